export default defineNuxtConfig({
  app: { baseURL: "/app/", head: { link: [{ rel: "icon", href: "data:," }] } },
  compatibilityDate: "2026-11-01",
  experimental: { payloadExtraction: false }, // with it, prerendering at a base path fails: "Invalid key: /"
  telemetry: false,
  vite: { optimizeDeps: { exclude: ["holdfast"] } }, // its development server is that of Vite 7
});
