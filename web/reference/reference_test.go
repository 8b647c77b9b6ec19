package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The pages that are committed are those that the sources make.
func TestTheReferenceIsCurrent(t *testing.T) {
	made, err := pages("../..")
	require.NoError(t, err)
	for name, text := range made {
		committed, err := os.ReadFile(filepath.Join("../..", name))
		require.NoError(t, err)
		assert.True(t, string(committed) == text, "%s is not what its sources make; run make docs", name)
	}
}

const declarations = `/// <reference lib="dom" />
// A package.

/** What went wrong. */
export type Code =
  // of the first layer
  | "denied" // try again
  | "lost"; // final
// ---- Opening ----

/**
 * How to open.
 * Wrong ones are refused.
 */
export interface Options extends Base {
  /** Where. */
  url?: string | URL;
  ms?: number; // default 5
  on(
    listener: (event: { type: string }) => void,
  ): void;
}
export type Mode = "a" | "b";
`

const declarationsPage = `<!-- Made by make docs from web/holdfast.d.ts. Change that instead. -->

# Reference of the JavaScript package

A package.

## Locks

### Code

What went wrong.

| Code | |
|---|---|
| ` + "`\"denied\"`" + ` | try again |
| ` + "`\"lost\"`" + ` | final |

## Opening

### Options

How to open.
Wrong ones are refused.

` + "`interface Options extends Base`" + `

- ` + "`url?: string | URL`" + `
  Where.
- ` + "`ms?: number`" + `
  default 5
- ` + "`on( listener: (event: { type: string }) => void, ): void`" + `

### Mode

` + "```ts\nexport type Mode = \"a\" | \"b\";\n```" + `
`

func TestDeclarations(t *testing.T) {
	page, err := declared(declarations)
	require.NoError(t, err)
	assert.Equal(t, declarationsPage, page)
}

func TestTextWithoutDeclaration(t *testing.T) {
	for _, source := range []string{"const a = 1;\n", "export interface Open {\n"} {
		_, err := declared(source)
		assert.Error(t, err, source)
	}
}
