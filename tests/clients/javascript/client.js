// What people do with the JavaScript client: objects, an informer, commands in a pod and forwarded
// ports, and a proxy. It makes a pod (none with PODS=0), and ends with an error at the first thing that
// goes wrong.
import * as net from 'node:net';
import { Readable, Writable } from 'node:stream';
import * as k8s from '@kubernetes/client-node';

const PATIENCE = 60_000;
const NAME = 'javascript-streams';
const PROGRAM = `
import http.server, os
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")
http.server.ThreadingHTTPServer((os.environ.get("POD_IP", "0.0.0.0"), 18202), Page).serve_forever()
`;

const config = new k8s.KubeConfig();
config.loadFromDefault();
const core = config.makeApiClient(k8s.CoreV1Api);

function expect(condition, what) {
  if (!condition) throw new Error(`expected: ${what}`);
}

async function until(what, happens) {
  const deadline = Date.now() + PATIENCE;
  while (Date.now() < deadline) {
    const found = await happens();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`${what}: not within ${PATIENCE / 1000} s`);
}

function collected() {
  const chunks = [];
  const sink = new Writable({ write: (chunk, _, done) => { chunks.push(chunk); done(); } });
  sink.text = () => Buffer.concat(chunks).toString();
  return sink;
}

async function objects() {
  const made = await core.createNamespacedConfigMap({ namespace: 'default', body: { metadata: { name: 'js' }, data: { a: '1' } } });
  made.data.a = '2';
  const replaced = await core.replaceNamespacedConfigMap({ name: 'js', namespace: 'default', body: made });
  expect(replaced.data.a === '2', 'the map is replaced');
  const refused = await core.createNamespacedConfigMap({ namespace: 'default', body: { metadata: { name: 'js' } } }).catch((error) => error);
  expect(refused.code === 409, `409, not ${refused.code}`);
}

async function informer() {
  const list = () => core.listNamespacedConfigMap({ namespace: 'default' });
  const informer = k8s.makeInformer(config, '/api/v1/namespaces/default/configmaps', list);
  const seen = [];
  informer.on('add', (map) => seen.push(`+${map.metadata.name}`));
  informer.on('delete', (map) => seen.push(`-${map.metadata.name}`));
  await informer.start();
  await core.createNamespacedConfigMap({ namespace: 'default', body: { metadata: { name: 'seen' } } });
  await until('added', () => seen.includes('+seen'));
  await core.deleteNamespacedConfigMap({ name: 'seen', namespace: 'default' });
  await until('deleted', () => seen.includes('-seen'));
  await informer.stop();
}

async function pod() {
  const address = { name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } };
  const container = { name: 'main', image: 'busybox', command: ['python3', '-c', PROGRAM], env: [address] };
  await until('an account', async () => (await core.listNamespacedServiceAccount({ namespace: 'default' })).items.some((a) => a.metadata.name === 'default'));
  await core.createNamespacedPod({ namespace: 'default', body: { metadata: { name: NAME }, spec: { containers: [container] } } });
  await until('a running pod', async () => (await core.readNamespacedPod({ name: NAME, namespace: 'default' })).status.phase === 'Running');
}

async function command() {
  const exec = new k8s.Exec(config);
  const [out, errors] = [collected(), collected()];
  const line = ['sh', '-c', 'read line; echo heard $line; echo oops >&2; exit 3'];
  const status = await new Promise((resolve, reject) => {
    exec.exec('default', NAME, 'main', line, out, errors, Readable.from(['you\n']), false, resolve).catch(reject);
  });
  const code = status.details.causes.find((cause) => cause.reason === 'ExitCode').message;
  expect(code === '3' && out.text() === 'heard you\n' && errors.text() === 'oops\n', `${code} ${out.text()} ${errors.text()}`);
}

async function forward() {
  const forwarding = new k8s.PortForward(config);
  const server = net.createServer((socket) => forwarding.portForward('default', NAME, [18202], socket, null, socket).catch(() => socket.destroy()));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  // A fresh pod may still be starting its server; the client does not end a connection that fails.
  const url = `http://127.0.0.1:${server.address().port}/`;
  await until('a page', async () => {
    const answer = await fetch(url, { signal: AbortSignal.timeout(2000) }).catch(() => null);
    return answer && (await answer.text().catch(() => '')) === 'hello';
  });
  server.close();
}

async function proxy() {
  const page = await core.connectGetNamespacedPodProxyWithPath({ name: `${NAME}:18202`, namespace: 'default', path: '' });
  expect(page === 'hello', `hello, not ${page}`);
}

const withPods = process.env.PODS === '0' ? [] : [pod, command, forward, proxy];
for (const step of [objects, informer, ...withPods]) {
  await step();
  console.log(`ok ${step.name}`);
}
process.exit(0);
