"use client";

import { useEffect } from "react";

export default function Page() {
  useEffect(() => {
    import("../src/main.js");
  }, []);
  return <textarea id="text" aria-label="Text" />;
}
