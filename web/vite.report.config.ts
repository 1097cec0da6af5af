// The charts of reports: one script and one stylesheet that a page holds in itself, and whose work is in them.
import { defineConfig } from "vite";

export default defineConfig({
  build: {
    outDir: "../src/eirkit/report/assets",
    emptyOutDir: false,
    copyPublicDir: false,
    target: "es2022",
    license: { fileName: "charts.licenses.md" },
    lib: { entry: "src/report/main.ts", formats: ["iife"], name: "eirkitCharts", fileName: () => "charts.js", cssFileName: "report" },
  },
});
