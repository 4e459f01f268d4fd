use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::super::route::tests::picture;
use super::*;

/// A Service at an address of loopback with one endpoint at `port`.
fn local(port: u16) -> Picture {
    let mut picture = picture();
    let service = Arc::make_mut(&mut picture.services[0]);
    let spec = service.spec.as_mut().expect("a spec");
    spec.cluster_ip = Some("127.128.77.1".to_owned());
    let ports = spec.ports.as_mut().expect("ports");
    ports.truncate(1);
    ports[0].port = 18_080;
    ports[0].node_port = None;
    let slice = Arc::make_mut(&mut picture.slices[0]);
    let endpoints = slice.endpoints.as_mut().expect("endpoints");
    endpoints.truncate(1);
    endpoints[0].addresses = vec!["127.0.0.1".to_owned()];
    slice.ports.as_mut().expect("ports")[0].port = Some(port.into());
    picture
}

#[tokio::test]
async fn a_connection_is_passed_on_and_follows_changes() {
    let backend = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = backend.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = backend.accept().await {
            let _ = stream.write_all(b"hello").await;
        }
    });
    let (pictures, news) = watch::channel(Picture::default());
    let (troubles, mut told) = mpsc::unbounded_channel();
    tokio::spawn(keep(news, troubles));
    pictures.send_replace(local(port));
    let mut answer = Vec::new();
    for _ in 0..200 {
        if let Ok(mut stream) = TcpStream::connect("127.128.77.1:18080").await {
            stream.read_to_end(&mut answer).await.expect("an answer");
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(answer, b"hello");
    // Without endpoints whoever connects is refused.
    let mut gone = local(port);
    gone.slices.clear();
    pictures.send_replace(gone);
    let refused = async {
        while TcpStream::connect("127.128.77.1:18080").await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), refused)
        .await
        .expect("a refusal");
    assert!(told.try_recv().is_err());
}

#[tokio::test]
async fn a_port_that_cannot_be_had_is_told_once() {
    let _taken = TcpListener::bind("127.128.77.1:18081")
        .await
        .expect("a port");
    let mut picture = local(1);
    let service = Arc::make_mut(&mut picture.services[0]);
    service
        .spec
        .as_mut()
        .expect("a spec")
        .ports
        .as_mut()
        .expect("ports")[0]
        .port = 18_081;
    let (pictures, news) = watch::channel(picture.clone());
    let (troubles, mut told) = mpsc::unbounded_channel();
    tokio::spawn(keep(news, troubles));
    let trouble = told.recv().await.expect("trouble");
    assert_eq!(
        (trouble.service.as_str(), trouble.reason),
        ("web", "PortNotBound")
    );
    pictures.send_replace(picture);
    tokio::task::yield_now().await;
    assert!(told.try_recv().is_err());
}

#[test]
fn a_client_sticks_to_its_endpoint_as_long_as_it_is_there() {
    let endpoint = |last| (Ipv4Addr::new(127, 64, 0, last), 80);
    let mut targets = Targets {
        endpoints: vec![endpoint(1), endpoint(2)],
        affinity: Some(Duration::from_secs(10)),
        ..Targets::default()
    };
    let (client, now) = (IpAddr::from([127, 0, 0, 1]), Instant::now());
    let first = targets.choose(client, now).expect("an endpoint");
    assert_eq!(targets.choose(client, now), Some(first));
    targets.endpoints.retain(|endpoint| *endpoint != first);
    let other = targets.choose(client, now).expect("an endpoint");
    assert_ne!(other, first);
    targets.endpoints = vec![endpoint(1), endpoint(2)];
    assert_eq!(
        targets.choose(client, now + Duration::from_secs(9)),
        Some(other)
    );
}
