// An authorization server: oidc-provider, with pages on which anyone may log in and consent to anything.
// node authorization.mjs NODE_MODULES PORT CLIENTS_AS_JSON SECONDS_OF_AN_ACCESS_TOKEN

import { generateKeyPairSync } from "node:crypto";
import { pathToFileURL } from "node:url";

const [modules, port, clients, seconds] = process.argv.slice(2);
const { Provider } = await import(pathToFileURL(`${modules}/oidc-provider/lib/index.js`));
const key = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ format: "jwk" });
new Provider(`http://127.0.0.1:${port}`, {
  clients: JSON.parse(clients),
  clientAuthMethods: ["client_secret_basic", "client_secret_post", "client_secret_jwt", "private_key_jwt", "none"],
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: true },
    introspection: { enabled: true },
    revocation: { enabled: true },
  },
  jwks: { keys: [key] },
  pkce: { required: () => true },
  scopes: ["openid", "offline_access", "mail"],
  ttl: { AccessToken: Number(seconds), ClientCredentials: Number(seconds) },
}).listen(Number(port), "127.0.0.1");
