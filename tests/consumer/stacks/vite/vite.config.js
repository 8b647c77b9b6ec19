export default { optimizeDeps: { exclude: ["holdfast"] } };
