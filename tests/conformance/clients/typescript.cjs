// The TypeScript client of major 1 or 2 against an endpoint: `typescript.cjs FOLDER MAJOR MODE URL`; FOLDER has node_modules,
// MODE (auto or legacy) is how major 2 chooses the revision.
// Prints what it saw as one JSON document.
const { createRequire } = require("node:module");
const path = require("node:path");

const [folder, major, mode, url] = process.argv.slice(2);
const load = createRequire(path.join(folder, "package.json"));

function library() {
  if (major === "2") return load("@modelcontextprotocol/client");
  const types = load("@modelcontextprotocol/sdk/types.js");
  return {
    ...load("@modelcontextprotocol/sdk/client/index.js"),
    ...load("@modelcontextprotocol/sdk/client/streamableHttp.js"),
    ask: { sampling: types.CreateMessageRequestSchema, elicitation: types.ElicitRequestSchema },
    logs: types.LoggingMessageNotificationSchema,
  };
}

async function main() {
  const { Client, StreamableHTTPClientTransport, ask, logs } = library();
  const client = new Client(
    { name: "typescript", version: major },
    { capabilities: { sampling: {}, elicitation: {} }, versionNegotiation: { mode } },
  );
  client.setRequestHandler(ask?.sampling ?? "sampling/createMessage", async (request) => ({
    role: "assistant",
    model: "none",
    content: { type: "text", text: `You said ${[request.params.messages[0].content].flat()[0].text}` },
  }));
  client.setRequestHandler(ask?.elicitation ?? "elicitation/create", async (request) => ({
    action: "accept",
    content: { username: request.params.message, email: "a@b.example" },
  }));
  const logged = [];
  const steps = [];
  client.setNotificationHandler(logs ?? "notifications/message", (note) => void logged.push(note.params.data));
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  const call = async (name, args = {}, options = undefined) => {
    const _meta = { "io.modelcontextprotocol/logLevel": "info" };
    const request = mode === "auto" ? { name, arguments: args, _meta } : { name, arguments: args };
    const result = major === "2"
      ? await client.callTool(request, options)
      : await client.callTool(request, undefined, options);
    return result.content[0].text;
  };
  const seen = {
    revision: client.getNegotiatedProtocolVersion?.() ?? "2025-11-25",
    tools: (await client.listTools()).tools.length,
    text: await call("test_simple_text"),
    sampled: await call("test_sampling", { prompt: "hello" }),
    elicited: await call("test_elicitation", { message: "who" }),
    resources: (await client.listResources()).resources.length,
  };
  await call("test_tool_with_logging");
  await call("test_tool_with_progress", {}, { onprogress: ({ progress }) => void steps.push(progress) });
  await call("test_simple_text"); // what came before it was handed out by now
  await client.close();
  console.log(JSON.stringify({ ...seen, logged, steps }));
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
