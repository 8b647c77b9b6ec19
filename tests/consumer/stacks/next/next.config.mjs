export default { output: "export", basePath: "/app" };
