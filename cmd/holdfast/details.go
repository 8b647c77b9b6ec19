package main

// details are the texts in the help of a command besides its flags.
var details = map[string]string{
	"serve": "Each flag is also an environment variable, and a line of the file that --config names: --data-dir is HOLDFAST_DATA_DIR and \"data-dir PATH\".\nThe command line overrides the environment, and the environment overrides the file.",
	"lock": `CMD gets HOLDFAST_TOKEN and HOLDFAST_SESSION in its environment, and the server and the API key of this command, so that "holdfast put" in CMD
writes under the lock. Several DOCs are locked all together or not at all. When the lock is lost, CMD and the processes that it has started get SIGTERM, and
SIGKILL after --grace. SIGTERM, SIGHUP, SIGINT and SIGQUIT go to CMD. The command waits for --wait even if the server cannot be reached.

  holdfast lock plan --wait 30s -- ./import.sh
  holdfast lock /workers --slots 3 -- ./worker

Exit codes:
  the exit code of CMD, or 128 and the number of the signal that ended it
  1    the lock was not granted in time (--conflict-exit-code), or another failure
  2    wrong usage
  69   the server cannot be reached within --wait and --patience
  75   the lock was lost, so CMD was ended
  77   the server needs a key, or does not allow it
  126  CMD cannot be run
  127  CMD was not found`,
	"locks": "DOC is a document, or a place with a slash. Without DOC, the command lists the locks of all documents. A user who may break a lock sees the id of its lease.",
	"break": "The command needs the permission \"break\". The holder's next request fails, and the audit log gets the reason.",
	"cat":   "The command prints the latest save, even if another owner holds the lock.",
	"put":   `Within "holdfast lock", the command writes under that lock. Elsewhere it acquires the lock of the document, writes and releases it. It prints the new ETag.`,
	"backup": `The command needs the permission "admin" for everything. The server keeps working meanwhile. FILE appears when the backup is whole and checked, and
replaces an existing file. "-" is the standard output: the exit code then says whether the backup is whole.

  holdfast backup "holdfast-$(date +%F).tar"`,
	"restore": `The command needs no server, and writes to the data directory itself. Tokens and revisions of events continue above all that clients have seen.
A restore that did not finish leaves a directory that "holdfast serve" refuses: remove its files and restore again. "-" is the standard input.

  holdfast restore holdfast-2026-01-31.tar --data-dir /var/lib/holdfast`,
	"completion": `  source <(holdfast completion bash)     in ~/.bashrc
  source <(holdfast completion zsh)      in ~/.zshrc, after compinit`,
}
