// Every page of these tests has Holdfast and functions to report about it. It is served as a module script, so that the
// page's content security policy applies to it.
import { openHoldfast, ProjectLockError } from "/holdfast.js"

const now = () => performance.timeOrigin + performance.now()

// Errors in the page that nothing catches.
const problems = []
addEventListener("error", e => problems.push(`error: ${e.message} ${e.error?.stack}`))
addEventListener("unhandledrejection", e => problems.push(`rejection: ${e.reason} ${e.reason?.stack}`))
const { error } = console
console.error = (...words) => { problems.push("console: " + words.join(" ")); error.apply(console, words) }
addEventListener("securitypolicyviolation", e => problems.push("policy: " + e.violatedDirective + " " + e.blockedURI))

const plain = value => JSON.parse(JSON.stringify(value ?? null, (key, v) => v instanceof Error
  ? { name: v.name, code: v.code, operation: v.operation, retryable: v.retryable, resource: v.resource, message: v.message }
  : v))

// The events as they came, leases and errors as plain objects.
const events = []
const types = () => events.map(e => e.type.slice("lock:".length))
const count = type => types().filter(t => t === type).length

const start = async options => {
  globalThis.hf = await openHoldfast(options)
  hf.subscribe(event => events.push({ ...plain(event), seen: now() }))
  await hf.ready
  return hf
}

// The error of a promise that is rejected as a plain object, with the time it took.
const failure = async promise => {
  const since = now()
  return promise.then(value => ({ value: plain(value) }), error => ({ ...plain({ error }).error, took: now() - since }))
}

// How many locks this origin holds and awaits whose name contains the text.
const locks = async (part = "") => {
  const { held, pending } = await navigator.locks.query()
  const named = list => list.filter(lock => lock.name.includes(part)).length
  return { held: named(held), pending: named(pending) }
}

Object.assign(globalThis, { openHoldfast, ProjectLockError, now, problems, plain, events, types, count, start, failure, locks })
Object.assign(globalThis, { hf: undefined, lease: undefined, got: 0 })
