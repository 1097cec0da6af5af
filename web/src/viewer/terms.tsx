// The list of measures with their meanings, and the links to it.
import { useEffect } from "preact/hooks";
import { allMeasures, measureNamed } from "../measures";
import { linkTo, readAddress } from "./address";

// A link to the definition of a measure, named by its identifier or its label; nothing for anything else.
export function TermLink({ name, title }: { name: string; title: string }) {
  const id = measureNamed(name);
  if (id === null) return null;
  const at = readAddress().get("at");
  return (
    <a class="term" href={linkTo({ ...(at ? { at } : {}), terms: id })} aria-label={`What ${title} means`} title={`What ${title} means`}>
      ?
    </a>
  );
}

export function TermsPage({ chosen }: { chosen: string }) {
  useEffect(() => document.getElementById(`measure-${chosen}`)?.scrollIntoView({ block: "center" }), [chosen]);
  return (
    <section aria-label="What the measures mean">
      <h2>What the measures mean</h2>
      <dl class="terms">
        {allMeasures().map((one) => (
          <div key={one.id} id={`measure-${one.id}`} class={one.id === chosen ? "here" : ""}>
            <dt>
              {one.label} <code>{one.id}</code>
            </dt>
            <dd>
              {one.meaning} ({one.of ? `share of ${one.of}` : one.unit}; {one.pooled})
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
