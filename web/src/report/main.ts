// The script of a report page: draws its charts from the data in it, and switches between light and dark.
import "../charts/charts.css";
import "../measures.css";
import "./report.css";
import type { Chart, Figure } from "../charts/chart";
import { drawItem } from "../charts/draw";
import { offerThemes } from "./theme";

const PAPER = 680; // pixels between the margins of a printed page

function dataOf(figure: HTMLElement): Chart | Figure {
  const held = figure.querySelector('script[type="application/json"]');
  return JSON.parse(held?.textContent ?? "null") as Chart | Figure;
}

function drawInto(figure: HTMLElement, width: number): void {
  const place = figure.querySelector<HTMLElement>(".drawing");
  if (!place) return;
  place.replaceChildren(drawItem(dataOf(figure), width));
  figure.classList.add("is-drawn");
}

function drawAll(width?: number): void {
  for (const figure of document.querySelectorAll<HTMLElement>("figure[data-chart]")) {
    drawInto(figure, width ?? figure.querySelector(".drawing")?.clientWidth ?? PAPER);
  }
}

function followWidth(): void {
  let drawn = document.documentElement.clientWidth;
  let waiting = 0;
  window.addEventListener("resize", () => {
    window.clearTimeout(waiting);
    waiting = window.setTimeout(() => {
      if (document.documentElement.clientWidth === drawn) return;
      drawn = document.documentElement.clientWidth;
      drawAll();
    }, 150);
  });
}

function followPrinting(): void {
  // On paper nothing can be unfolded, so what stands behind a picture is shown.
  const folded: HTMLDetailsElement[] = [];
  window.addEventListener("beforeprint", () => {
    drawAll(PAPER);
    for (const details of document.querySelectorAll<HTMLDetailsElement>("details[data-print]:not([open])")) {
      details.open = true;
      folded.push(details);
    }
  });
  window.addEventListener("afterprint", () => {
    for (const details of folded.splice(0)) details.open = false;
    drawAll();
  });
}

offerThemes(document.querySelector<HTMLElement>("[data-themes]"));
drawAll();
followWidth();
followPrinting();
