declare const process: { argv: [string, string, string] };
