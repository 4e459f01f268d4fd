//! A kubeconfig for one user of the cluster.

use kube::config::{
    AuthInfo, Cluster, Context, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext,
};
use windlass_apiserver::pki::KeyedCertificate;

/// Names used for cluster, user and context alike.
const NAME: &str = "windlass";

/// The kubeconfig of the user that has this certificate.
pub(crate) fn kubeconfig(server: &str, ca: &str, identity: &KeyedCertificate) -> Kubeconfig {
    let cluster = Cluster {
        server: Some(server.to_owned()),
        certificate_authority_data: Some(base64(ca)),
        ..Cluster::default()
    };
    let user = AuthInfo {
        client_certificate_data: Some(base64(&identity.certificate)),
        client_key_data: Some(base64(&identity.key).into()),
        ..AuthInfo::default()
    };
    let context = Context {
        cluster: NAME.into(),
        user: Some(NAME.into()),
        ..Context::default()
    };
    Kubeconfig {
        api_version: Some("v1".into()),
        kind: Some("Config".into()),
        clusters: vec![NamedCluster {
            name: NAME.into(),
            cluster: Some(cluster),
            ..NamedCluster::default()
        }],
        auth_infos: vec![NamedAuthInfo {
            name: NAME.into(),
            auth_info: Some(user),
            ..NamedAuthInfo::default()
        }],
        contexts: vec![NamedContext {
            name: NAME.into(),
            context: Some(context),
            ..NamedContext::default()
        }],
        current_context: Some(NAME.into()),
        ..Kubeconfig::default()
    }
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}
