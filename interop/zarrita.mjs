// Reads arrays with zarrita.js: lines {"path"} in, lines {"path", "sha256"} out.
//   node zarrita.mjs STORE
// The sum is that of the elements in C order, little-endian, or of one JSON value a line.
import { createHash } from "node:crypto"
import { createInterface } from "node:readline"
import * as zarr from "zarrita"
import { FileSystemStore } from "@zarrita/storage"

// The codecs of an array are loaded in the background; reading it reports the same error.
process.on("unhandledRejection", () => {})

const root = zarr.root(new FileSystemStore(process.argv[2]))

function* places({ shape, stride }) { // where the elements lie, in C order
	const at = shape.map(() => 0)
	let n = shape.reduce((a, b) => a * b, 1)
	for (; n > 0; n--) {
		yield at.reduce((sum, i, d) => sum + i * stride[d], 0)
		for (let d = shape.length - 1; d >= 0 && ++at[d] === shape[d]; d--) at[d] = 0
	}
}

function fixed(v, { text, width }) { // a text of a fixed width, as it is in memory
	const out = Buffer.alloc(width)
	let at = 0
	for (const c of v) at = text === "U" ? out.writeUInt32LE(c.codePointAt(0), at) : out.writeUInt8(c.codePointAt(0), at)
	return out
}

function sum(chunk, job) {
	const h = createHash("sha256"), { data } = chunk
	if (ArrayBuffer.isView(data)) {
		const out = new data.constructor(data.length)
		let i = 0
		for (const p of places(chunk)) out[i++] = data[p]
		return h.update(new Uint8Array(out.buffer, 0, i * data.BYTES_PER_ELEMENT)).digest("hex")
	}
	for (const p of places(chunk)) {
		const v = data.get ? data.get(p) : data[p]
		if (typeof v === "boolean") h.update(new Uint8Array([v]))
		else if (typeof v === "string" && "US".includes(job.text)) h.update(fixed(v, job))
		else if (typeof v === "string") h.update(JSON.stringify(v) + "\n")
		else throw new Error(`elements of type ${typeof v}`)
	}
	return h.digest("hex")
}

for await (const line of createInterface({ input: process.stdin })) {
	const job = JSON.parse(line), { path, format } = job
	const answer = { path }
	try {
		const open = format === 2 ? zarr.open.v2 : zarr.open.v3
		const a = await open(root.resolve(path), { kind: "array" })
		let chunk = await zarr.get(a)
		if (chunk === null || typeof chunk !== "object" || chunk.data === undefined) { // without dimensions
			const c = await a.getChunk([])
			chunk = { data: c.data, shape: [], stride: [] }
		}
		answer.sha256 = sum(chunk, job)
	} catch (e) {
		answer.error = `${e.name}: ${e.message}`
	}
	console.log(JSON.stringify(answer))
}
