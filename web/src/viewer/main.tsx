// The frame of the viewer: choice of a folder and a run, links, and which view is shown.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ListedFolder } from "../documents";
import { go, linkHome, linkTo, readAddress, useAddress } from "./address";
import { useAnswer, useStamp } from "./asking";
import { CutPage } from "./cut";
import { Inert } from "./inert";
import { FolderPage } from "./overview";
import { RunPage } from "./run";
import { TermsPage } from "./terms";
import "../measures.css";
import "./viewer.css";

const KINDS: Record<ListedFolder["kind"], string> = { sweep: "sweep", evidence: "evidence", analysis: "recorded runs", compaction: "compactors" };

function Page() {
  const address = useAddress();
  const [step, named] = useState("step");
  const { data, error } = useAnswer("folders", {});
  const folders = data?.folders ?? [];
  const own = folders.length === 1 ? folders[0] : folders.find((folder) => folder.key === ".");
  const at = address.get("at") ?? own?.key ?? null;
  const others = folders.filter((folder) => folder.key !== at);
  const run = address.get("run");
  const terms = address.get("terms");
  const isCut = folders.find((folder) => folder.key === at)?.kind === "compaction";
  const place = run && ["t", "turn"].map((name) => address.has(name) && `${name === "t" ? step : name} ${address.get(name)}`).find(Boolean);
  const stamp = useStamp(at);
  useEffect(() => {
    document.title = [place, run, at === "." ? null : at, data?.name, "eirkit"].filter(Boolean).join(" · ");
  }, [place, run, at, data]);
  return (
    <>
      <a class="skip" href="#content">
        Skip to content
      </a>
      <header>
        <Crumbs name={data?.name ?? ""} at={at} run={run} own={at === own?.key} />
      </header>
      <main id="content" tabIndex={-1}>
        {error && <p class="fault">{error}</p>}
        {terms !== null && <TermsPage chosen={terms} />}
        {data && !at && terms === null && <Folded folders={folders} />}
        {at === "." && !run && terms === null && others.length > 0 && (
          <nav aria-label="Below this folder" class="below">
            <span class="quiet">below this folder:</span> <Folded folders={others} />
          </nav>
        )}
        {at && !run && terms === null && <FolderPage key={at} at={at} address={address} stamp={stamp} />}
        {at && run && isCut && <CutPage key={`${at}/${run}`} at={at} run={run} address={address} stamp={stamp} />}
        {at && run && data && !isCut && <RunPage key={`${at}/${run}`} at={at} run={run} address={address} stamp={stamp} named={named} />}
      </main>
    </>
  );
}

function Crumbs({ name, at, run, own }: { name: string; at: string | null; run: string | null; own: boolean }) {
  return (
    <nav aria-label="Where we are">
      <h1>
        <Crumb to={{}} here={(!at || (own && !run)) && !readAddress().has("terms")} text={name || "eirkit"} />
        {at && at !== "." && (
          <>
            {" / "}
            <Crumb to={{ at }} here={!run && !readAddress().has("terms")} text={at} />
          </>
        )}
        {run && (
          <>
            {" / "}
            <Crumb to={{}} here text={run} />
          </>
        )}
      </h1>
    </nav>
  );
}

function Crumb({ to, here, text }: { to: Record<string, string>; here: boolean; text: string }) {
  if (here) return <Inert text={text} />;
  const move = (event: MouseEvent) => {
    event.preventDefault();
    go(to, "push", true);
  };
  return (
    <a href={Object.keys(to).length ? linkTo(to) : linkHome()} onClick={move}>
      <Inert text={text} />
    </a>
  );
}

function Folded({ folders }: { folders: ListedFolder[] }) {
  return (
    <ul class="folders">
      {folders.map((folder) => (
        <li key={folder.key}>
          <Crumb to={{ at: folder.key }} here={false} text={folder.key === "." ? "this folder" : folder.key} />
          <span class="quiet">
            {" "}
            {KINDS[folder.kind]}, {new Date(1000 * folder.changed).toLocaleString()}
          </span>
          {folder.about && (
            <div class="about">
              <Inert text={folder.about} />
            </div>
          )}
        </li>
      ))}
    </ul>
  );
}

// The token came in by the address and lives on in a cookie; it has no business in the history.
if (readAddress().has("token")) go({}, "replace");

const place = document.getElementById("page");
if (place) {
  place.replaceChildren();
  render(<Page />, place);
}
