// A test of a small operator, on a cluster of its own that is there in a moment and gone with the test.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import * as k8s from '@kubernetes/client-node';

const WINDLASS = process.env.WINDLASS ?? 'windlass';
const folder = mkdtempSync(join(tmpdir(), 'notes-'));
const config = new k8s.KubeConfig();

before(() => {
  const began = performance.now();
  execFileSync(WINDLASS, ['up', '--in-memory', '--no-node', '--detach', '--data-dir', folder]);
  config.loadFromFile(join(folder, 'kubeconfig'));
  console.log(`ok cluster in ${(performance.now() - began).toFixed(0)} ms`);
});

after(() => {
  execFileSync(WINDLASS, ['down', '--data-dir', folder]);
  rmSync(folder, { recursive: true });
});

// The operator: a ConfigMap with a `copy-to` annotation is copied.
async function copies(core) {
  const list = () => core.listNamespacedConfigMap({ namespace: 'default' });
  const informer = k8s.makeInformer(config, '/api/v1/namespaces/default/configmaps', list);
  informer.on('add', async ({ metadata, data }) => {
    const name = metadata.annotations?.['copy-to'];
    if (name) await core.createNamespacedConfigMap({ namespace: 'default', body: { metadata: { name }, data } });
  });
  await informer.start();
  return informer;
}

test('a ConfigMap is copied', { timeout: 60_000 }, async () => {
  const core = config.makeApiClient(k8s.CoreV1Api);
  const informer = await copies(core);
  const metadata = { name: 'one', annotations: { 'copy-to': 'two' } };
  await core.createNamespacedConfigMap({ namespace: 'default', body: { metadata, data: { text: 'first' } } });
  let copy;
  while (!copy) {
    copy = await core.readNamespacedConfigMap({ name: 'two', namespace: 'default' }).catch(() => null);
  }
  assert.deepEqual(copy.data, { text: 'first' });
  await informer.stop();
  console.log('ok reconciled');
});
