import { contend } from "/contender.js";

onmessage = ({ data }) => contend(data);
