import { lease } from "/soak/leaser.js";

onmessage = ({ data }) => lease(data);
