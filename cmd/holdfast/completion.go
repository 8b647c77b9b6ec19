package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strings"
)

func prepareCompletion(*flag.FlagSet) func(context.Context, call) error {
	return func(_ context.Context, use call) error {
		script, ok := map[string]string{"bash": bashCompletion, "zsh": zshCompletion}[use.args[0]]
		if !ok {
			return fmt.Errorf("there is completion for bash and zsh, not for %q", use.args[0])
		}
		var names []string
		var cases strings.Builder
		for _, c := range commands() {
			names = append(names, c.name)
			flags, _ := c.flags(io.Discard)
			var words []string
			flags.VisitAll(func(f *flag.Flag) { words = append(words, "--"+f.Name) })
			if c.name == "completion" {
				words = append(words, "bash", "zsh")
			}
			fmt.Fprintf(&cases, "    %s) flags='%s' ;;\n", c.name, strings.Join(words, " "))
		}
		fmt.Fprintf(use.stdout, script, strings.Join(names, " "), cases.String())
		return nil
	}
}

// After -- the completion is that of the program which follows. Flags whose values are files complete file names.
const bashCompletion = `# Completion of holdfast for bash: source <(holdfast completion bash)
_holdfast() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} flags='' i
  if [[ $COMP_CWORD -eq 1 ]]; then
    COMPREPLY=($(compgen -W '%s' -- "$current"))
    return
  fi
  for ((i = 2; i < COMP_CWORD; i++)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then
      if [[ $((i + 1)) -eq $COMP_CWORD ]]; then
        COMPREPLY=($(compgen -c -- "$current"))
      else
        COMPREPLY=($(compgen -f -- "$current"))
      fi
      return
    fi
  done
  case $previous in
    --*-file|--*-dir|--config|--ca|--policy|--audit|--api-keys|--tls-*|--etcd-*|--peer-*) COMPREPLY=($(compgen -f -- "$current")); return ;;
  esac
  case ${COMP_WORDS[1]} in
%s  esac
  COMPREPLY=($(compgen -W "$flags" -- "$current"))
}
complete -F _holdfast holdfast
`

const zshCompletion = `#compdef holdfast
# Completion of holdfast for zsh: source <(holdfast completion zsh)
_holdfast() {
  local flags=''
  if (( CURRENT == 2 )); then
    compadd -- ${=:-%s}
    return
  fi
  local separator=${words[(i)--]}
  if (( separator < CURRENT )); then
    shift separator words
    (( CURRENT -= separator ))
    _normal
    return
  fi
  case ${words[CURRENT-1]} in
    --*-file|--*-dir|--config|--ca|--policy|--audit|--api-keys|--tls-*|--etcd-*|--peer-*) _files; return ;;
  esac
  case ${words[2]} in
%s  esac
  compadd -- ${=flags}
}
compdef _holdfast holdfast
`
