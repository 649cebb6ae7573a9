// A client of AG-UI's own package: node ag_ui.mjs FOLDER URL TOKEN STEPS. Prints what it has seen of each step as JSON.
// A step is a message, or {"resume": payload}, which answers all that is open.

import { createRequire } from "node:module";

const [folder, url, token, steps] = process.argv.slice(2);
const { HttpAgent, buildResumeArray } = createRequire(`${folder}/`)("@ag-ui/client");
const agent = new HttpAgent({ url, threadId: "node", headers: { Authorization: `Bearer ${token}` } });
const seen = [];
for (const step of JSON.parse(steps)) {
  const events = [];
  const parameters = {};
  if (typeof step === "string") agent.addMessage({ id: `m${seen.length}`, role: "user", content: step });
  else {
    const answers = agent.pendingInterrupts.map(({ id }) => [id, { status: "resolved", payload: step.resume }]);
    parameters.resume = buildResumeArray(agent.pendingInterrupts, Object.fromEntries(answers));
  }
  let failure = null;
  try {
    await agent.runAgent(parameters, { onEvent: ({ event }) => void events.push(event.type) });
  } catch (error) {
    failure = String(error?.message ?? error);
  }
  seen.push({ events, failure, ...structuredClone({ messages: agent.messages, state: agent.state, open: agent.pendingInterrupts }) });
}
process.stdout.write(JSON.stringify(seen));
