// Put before every script of a machine: its clock can be set, in all pages and workers at once.
{
  const Real = Date;
  let ahead = AHEAD;
  new BroadcastChannel("soak-clock").onmessage = ({ data }) => (ahead = data);
  globalThis.Date = class extends Real {
    constructor(...args) {
      if (args.length) super(...args);
      else super(Real.now() + ahead);
    }
    static now() {
      return Real.now() + ahead;
    }
  };
}
