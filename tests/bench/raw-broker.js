let first;
onconnect = ({ ports: [port] }) => {
  if (!first) {
    first = port;
    return;
  }
  const { port1, port2 } = new MessageChannel();
  first.postMessage("", [port1]);
  port.postMessage("", [port2]);
};
