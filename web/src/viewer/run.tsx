// One run, of whichever kind.
import type { LacunaRun, VestigeRun } from "./api";
import { useAnswer } from "./asking";
import { LacunaPage } from "./lacuna";
import { VestigePage } from "./vestige";

export function RunPage({ at, run, address, stamp }: { at: string; run: string; address: URLSearchParams; stamp: string }) {
  // A run is written once and whole; only an analysis that is made anew changes it.
  const { data, error } = useAnswer<LacunaRun | VestigeRun>("run", { at, run }, stamp.split("-")[4] ?? "");
  if (error) return <p class="fault">{error}</p>;
  if (!data) return <p class="quiet">Reading the run…</p>;
  if (data.kind === "lacuna") return <LacunaPage at={at} run={data} address={address} />;
  return <VestigePage at={at} run={data} address={address} />;
}
