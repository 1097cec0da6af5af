// Chooses the view of a run by its kind.
import { useEffect } from "preact/hooks";
import { reportOf } from "./address";
import { useAnswer } from "./asking";
import { LacunaPage } from "./lacuna";
import { VestigePage } from "./vestige";

interface Asked {
  at: string;
  run: string;
  address: URLSearchParams;
  stamp: string;
  named: (step: string) => void; // told what a step of the run is called
}

export function RunPage({ at, run, address, stamp, named }: Asked) {
  // A run is written once and whole; only an analysis that is made anew changes it.
  const { data, error } = useAnswer("run", { at, run }, stamp.split("-")[4] ?? "");
  useEffect(() => {
    if (data?.kind === "lacuna") named(data.units.step);
  }, [data]);
  if (error) return <p class="fault">{error}</p>;
  if (!data) return <p class="quiet">Reading the run…</p>;
  const row = data.kind === "lacuna" ? `cell-${data.cell}` : "";
  return (
    <>
      <p class="quiet">
        <a href={reportOf(at, row)}>{row ? "Its row in the report" : "The report of this folder"}</a>
      </p>
      {data.kind === "lacuna" ? <LacunaPage at={at} run={data} address={address} /> : <VestigePage at={at} run={data} address={address} />}
    </>
  );
}
