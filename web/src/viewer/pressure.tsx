// Chart of EIR and capacity over the steps of a LACUNA run, with the pressure between them.
import * as Plot from "@observablehq/plot";
import { colorOf } from "../colors";
import type { LacunaRun, PressureCurve } from "../documents";
import { useAnswer } from "./asking";
import { Legend } from "./legend";
import { draw, Picture, wholeTicks } from "./picture";

export function PressureChart({ at, run, t }: { at: string; run: LacunaRun; t: number }) {
  const { data, error, waiting } = useAnswer("pressure", { at, run: run.run });
  const curve = data?.curve;
  if (error || data?.unknown) return <p class="quiet">No EIR: {error || data?.unknown}</p>;
  if (!curve) return waiting ? <p class="quiet">Counting what must survive each {run.units.step}…</p> : null;
  const now = curve.pressure[t] ?? null;
  const words = `${bits(curve.needed_bits[t])} needed after ${run.units.step} ${t}, ${bits(curve.capacity_bits)} fit (h = ${curve.h})`;
  return (
    <figure>
      <figcaption>
        <strong>What must survive, and what fits.</strong> {words}
        {now !== null && `; pressure ${now.toFixed(2)}`}, at most {curve.peak_pressure.toFixed(2)}.{beyond(run)}
      </figcaption>
      <Picture make={(width) => pressurePicture(curve, t, width, run.units.step)} on={[curve, t]} label={`EIR and capacity over the ${run.units.step}s. ${words}.`} />
      <Legend keys={[["needed", "EIR"], ["capacity", "capacity"], ["over", "more than fits"], ["under", "room left"]]} />
    </figure>
  );
}

// A memory that is not held to h records keeps more than what stays in sight.
function beyond(run: LacunaRun): string {
  const { memory, panel } = run.access;
  if (!memory || panel === "strict") return "";
  return ` That is what stays in sight; its memory, ${memory}, is not held to h records.`;
}

function bits(value: number | null | undefined): string {
  return value === null || value === undefined ? "unknown" : `${value.toFixed(1)} bits`;
}

function pressurePicture(data: PressureCurve, t: number, width: number, step: string): Element {
  const cuts = data.needed_bits.map((needed, cut) => ({ cut, needed, capacity: data.capacity_bits }));
  const known = cuts.filter((cut) => cut.needed !== null);
  return draw({
    width,
    height: 202,
    marginLeft: 52,
    marginTop: 22,
    marginBottom: 42,
    x: { label: `after ${step}`, labelArrow: "none", labelAnchor: "center", tickFormat: "d", ticks: wholeTicks(0, cuts.length - 1, width) },
    y: { label: "bits", labelArrow: "none", zero: true, grid: true, nice: true },
    marks: [
      Plot.areaY(known, { x: "cut", y1: "capacity", y2: (cut: { needed: number; capacity: number }) => Math.max(cut.needed, cut.capacity), fill: colorOf("missing-input"), fillOpacity: 0.28, curve: "step-after" }),
      Plot.areaY(known, { x: "cut", y1: (cut: { needed: number; capacity: number }) => Math.min(cut.needed, cut.capacity), y2: "capacity", fill: colorOf("correct"), fillOpacity: 0.16, curve: "step-after" }),
      Plot.lineY(known, { x: "cut", y: "needed", stroke: "var(--accent)", strokeWidth: 2.5, curve: "step-after" }),
      Plot.lineY(known, { x: "cut", y: "capacity", stroke: "var(--ink)", strokeWidth: 1.5, strokeDasharray: "5 3" }),
      Plot.ruleX([t], { stroke: "var(--ink)", strokeWidth: 1 }),
    ],
  });
}
