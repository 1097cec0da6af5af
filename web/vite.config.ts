// The viewer: one page, one script and one stylesheet, under names that do not change.
import { defineConfig } from "vitest/config";

export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/eirkit/report/assets/viewer",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    license: { fileName: "licenses.md" },
    chunkSizeWarningLimit: 800,
    rollupOptions: {
      output: {
        entryFileNames: "[name].js",
        chunkFileNames: "[name].js",
        assetFileNames: "[name][extname]",
      },
    },
  },
  test: { environment: "happy-dom", include: ["tests/**/*.test.ts", "tests/**/*.test.tsx"] },
});
