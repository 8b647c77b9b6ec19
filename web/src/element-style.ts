// The style of <holdfast-status>. A constructed sheet needs no exception in a content security policy.

const css = `
:host {
  display: block;
  --editing: var(--holdfast-editing, light-dark(#0c6a4d, #62d3a4));
  --reading: var(--holdfast-reading, light-dark(#2c5288, #98baf0));
  --waiting: var(--holdfast-waiting, light-dark(#855300, #f2bf60));
  --failed: var(--holdfast-failed, light-dark(#a52c20, #ff9d8d));
  --line: var(--holdfast-line, color-mix(in srgb, currentColor 30%, transparent));
  font: var(--holdfast-font, inherit);
}
:host([hidden]), [hidden] { display: none !important; }
[part=line] { display: flex; flex-wrap: wrap; align-items: center; gap: var(--holdfast-gap, .5em 1em); }
[part~=status] { color: var(--reading); font-weight: 600; }
[part~=status]:focus { outline: none; }
[part~=status]::before { content: ""; display: inline-block; width: .6em; height: .6em; margin-inline-end: .5em; border: .12em solid; border-radius: 50%; }
[part~=editing] { color: var(--editing); }
[part~=editing]::before { background: currentColor; }
[part~=asking], [part~=loading], [part~=none], [part~=disabled] { color: var(--waiting); }
[part~=save] { opacity: .85; }
[part~=error], [part~=forbidden], [part=message] { color: var(--failed); opacity: 1; }
[part=message], [part=drafts-title] { margin: .5em 0; font: inherit; font-weight: 600; }
[part=drafts] { display: grid; gap: .5em; margin: 0; padding: 0; list-style: none; }
[part=draft] { display: flex; flex-wrap: wrap; align-items: center; gap: .5em; padding: .5em .75em; border: 1px solid var(--line); border-radius: .5em; }
[part=draft-text] { flex: 1 1 12em; min-width: 0; max-height: 6em; overflow: auto; overflow-wrap: anywhere; white-space: pre-wrap; }
[part~=button] { min-height: 2.75em; padding: .25em 1em; border: 1px solid var(--holdfast-button-line, currentColor); border-radius: .5em; background: var(--holdfast-button, transparent); color: inherit; font: inherit; cursor: pointer; }
[part~=button]:hover { background: var(--holdfast-button-hover, color-mix(in srgb, currentColor 10%, transparent)); }
[part~=button]:focus-visible { outline: 2px solid; outline-offset: 2px; }
[part~=button][aria-disabled=true] { opacity: .6; cursor: default; }
`;

let sheet: CSSStyleSheet | undefined;

export function style(): CSSStyleSheet {
  if (!sheet) {
    sheet = new CSSStyleSheet();
    sheet.replaceSync(css);
  }
  return sheet;
}
