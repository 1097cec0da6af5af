// One run, of whichever kind.
import type { LacunaRun, VestigeRun } from "./api";
import { reportOf } from "./address";
import { useAnswer } from "./asking";
import { LacunaPage } from "./lacuna";
import { VestigePage } from "./vestige";

export function RunPage({ at, run, address, stamp }: { at: string; run: string; address: URLSearchParams; stamp: string }) {
  // A run is written once and whole; only an analysis that is made anew changes it.
  const { data, error } = useAnswer<LacunaRun | VestigeRun>("run", { at, run }, stamp.split("-")[4] ?? "");
  if (error) return <p class="fault">{error}</p>;
  if (!data) return <p class="quiet">Reading the run…</p>;
  const row = data.kind === "lacuna" && data.cell ? `cell-${data.cell}` : "";
  return (
    <>
      <p class="quiet">
        <a href={reportOf(at, row)}>{row ? "Its row in the report" : "The report of this folder"}</a>
      </p>
      {data.kind === "lacuna" ? <LacunaPage at={at} run={data} address={address} /> : <VestigePage at={at} run={data} address={address} />}
    </>
  );
}
