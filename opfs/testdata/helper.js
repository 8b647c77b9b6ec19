// The helper worker of a page, for the tests.
import { serve } from "../files.js";

onmessage = async ({ data }) => postMessage(await serve(data));
