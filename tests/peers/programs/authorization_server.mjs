// An authorization server, by oidc-provider. Usage: node authorization_server.mjs PACKAGE PORT RESOURCE ROBOT_SECRET HUB_SECRET
// It registers clients, requires PKCE, rotates refresh tokens, and has pages on which everybody can sign in as anybody.

import { pathToFileURL } from 'node:url';

const [place, port, resource, robotSecret, hubSecret] = process.argv.slice(2);
const { default: Provider, errors } = await import(pathToFileURL(`${place}/lib/index.js`));

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    {
      client_id: 'robot', client_secret: robotSecret, grant_types: ['client_credentials'],
      redirect_uris: [], response_types: [],
    },
    { client_id: 'hub', client_secret: hubSecret, grant_types: [], redirect_uris: [], response_types: [] },
  ],
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: true },
    introspection: { enabled: true },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo(ctx, named) {
        if (named !== resource) throw new errors.InvalidTarget();
        return { scope: 'read write', audience: resource, accessTokenFormat: 'opaque', accessTokenTTL: 4 };
      },
    },
  },
  pkce: { required: () => true },
  rotateRefreshToken: true,
  scopes: ['openid', 'offline_access', 'read', 'write'],
  findAccount: (ctx, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
});

provider.listen(Number(port), '127.0.0.1', () => console.log('ready'));
