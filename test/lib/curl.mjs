// What these tests need of curl, for machines that have none: curl [-sS] URL [-H 'name: value']… [-d BODY]
const options = process.argv.slice(2).filter((word) => word !== "-sS")
const all = (flag) => options.flatMap((word, i) => (word === flag ? [options[i + 1]] : []))
const url = options.find((word, i) => !word.startsWith("-") && !["-H", "-d"].includes(options[i - 1]))
const [body] = all("-d")
const headers = Object.fromEntries(all("-H").map((header) => header.split(/:\s*(.*)/s, 2)))
const response = await fetch(url, body === undefined ? { headers } : { method: "POST", headers, body })
process.stdout.write(await response.text())
