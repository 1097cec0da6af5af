// Shows pictures of Observable Plot in a page whose policy allows no inline styles.
import * as Plot from "@observablehq/plot";
import { useEffect, useRef, useState } from "preact/hooks";

const CLASS = "plot"; // its rules stand in viewer.css

export function draw(options: Plot.PlotOptions): SVGSVGElement {
  const picture = Plot.plot({
    className: CLASS,
    style: { background: "transparent", color: "var(--ink)", fontFamily: "inherit", fontSize: "12px", overflow: "visible" },
    ...options,
  }) as SVGSVGElement;
  for (const style of picture.querySelectorAll("style")) style.remove();
  return picture;
}

const TICK = 32; // pixels that a number of up to four digits wants

// Whole numbers only, and not more than can be read in so many pixels.
export function wholeTicks(low: number, high: number, room: number): number[] {
  const most = Math.max(2, Math.min(20, Math.floor(room / TICK)));
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((one) => (high - low) / one <= most) ?? 2000;
  const first = step === 1 ? low : Math.ceil(low / step) * step;
  return Array.from({ length: Math.max(0, Math.floor((high - first) / step) + 1) }, (_, place) => first + place * step);
}

// Draw again whenever what it depends on changes, as wide as there is room.
export function Picture({
  make,
  on,
  label,
  class: name = "",
}: {
  make: (width: number) => Element;
  on: unknown[];
  label: string;
  class?: string;
}) {
  const place = useRef<HTMLDivElement>(null);
  const width = useWidth(place);
  useEffect(() => {
    if (!place.current || !width) return;
    const made = make(width);
    for (const style of made.querySelectorAll("style")) style.remove();
    for (const named of made.querySelectorAll("[aria-label]")) named.removeAttribute("aria-label"); // the place has words
    place.current.replaceChildren(made);
  }, [width, ...on]);
  return <div class={`picture ${name}`} ref={place} role="img" aria-label={label} />;
}

export function useWidth(place: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (!place.current) return;
    const watch = new ResizeObserver(([entry]) => entry && setWidth(Math.floor(entry.contentRect.width)));
    watch.observe(place.current);
    setWidth(Math.floor(place.current.clientWidth));
    return () => watch.disconnect();
  }, []);
  return width;
}
