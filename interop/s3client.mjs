// Runs one operation of the JavaScript SDK on a bucket and prints its result as JSON.
//   node s3client.mjs ENDPOINT BUCKET OPERATION KEY [FILE]
import { readFileSync, readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { DeleteObjectsCommand, DeleteObjectCommand, GetObjectCommand, PutObjectCommand, S3Client, paginateListObjectsV2 } from "@aws-sdk/client-s3"

const [endpoint, Bucket, operation, Key, file] = process.argv.slice(2)
const client = new S3Client({ endpoint, region: "us-east-1", forcePathStyle: true })

async function* list(Prefix, Delimiter) {
	for await (const page of paginateListObjectsV2({ client, pageSize: 3 }, { Bucket, Prefix, Delimiter })) {
		for (const { Prefix: p } of page.CommonPrefixes ?? []) yield [p.slice(Prefix.length), null]
		for (const { Key: k, Size } of page.Contents ?? []) yield [k.slice(Prefix.length), Size]
	}
}

async function upload(key, path) {
	if (!statSync(path).isDirectory()) {
		await client.send(new PutObjectCommand({ Bucket, Key: key, Body: readFileSync(path) }))
		return
	}
	for (const name of readdirSync(path)) await upload(`${key}/${name}`, join(path, name))
}

async function get(Key) {
	return Buffer.from(await (await client.send(new GetObjectCommand({ Bucket, Key }))).Body.transformToByteArray()).toString("hex")
}

const operations = {
	ls: () => all(list(Key, "/")),
	find: () => all(list(Key)),
	get: () => get(Key),
	fetch: async () => Promise.all((await all(list(Key))).map(async ([name]) => [name, await get(Key + name)])),
	put: () => upload(Key, file),
	rm: () => client.send(new DeleteObjectCommand({ Bucket, Key })),
	rmtree: async () => {
		const Objects = (await all(list(Key))).map(([name]) => ({ Key: Key + name }))
		const { Errors } = await client.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects } }))
		if (Errors?.length) throw new Error(JSON.stringify(Errors))
	},
}

async function all(items) {
	const out = []
	for await (const item of items) out.push(item)
	return out
}

const result = await operations[operation]()
console.log(JSON.stringify(operation.startsWith("rm") || operation === "put" ? null : result))
