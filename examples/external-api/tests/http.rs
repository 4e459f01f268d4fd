//! The client of the provider, against a server on loopback.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use external_api_operator::{NameService, client::HttpClient};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use windlass::error::Class;

type Seen = Arc<Mutex<Vec<String>>>;

async fn answer(seen: Seen, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let line = format!("{} {}", request.method(), request.uri().path());
    let host = request.uri().path().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    seen.lock()
        .unwrap()
        .push(format!("{line} {}", String::from_utf8_lossy(&body)));
    let status = match host.as_str() {
        "/records/refused" => StatusCode::BAD_REQUEST,
        "/records/broken" => StatusCode::BAD_GATEWAY,
        "/records/gone" => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    };
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

async fn serve() -> (String, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let seen = Seen::default();
    let shown = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let seen = Arc::clone(&shown);
            let service = service_fn(move |request| {
                let seen = Arc::clone(&seen);
                async move { Ok::<_, Infallible>(answer(seen, request).await) }
            });
            let served = hyper::server::conn::http1::Builder::new();
            tokio::spawn(served.serve_connection(TokioIo::new(stream), service));
        }
    });
    (address, seen)
}

#[tokio::test]
async fn client_sends_the_address_and_reads_the_status() {
    let (address, seen) = serve().await;
    let client = HttpClient::new(address);
    client.put("www", "192.0.2.1").await.unwrap();
    client.delete("gone").await.unwrap();
    let refused = client.put("refused", "192.0.2.1").await.unwrap_err();
    assert_eq!(refused.class(), Class::Terminal);
    assert_eq!(refused.to_string(), "cannot put refused: 400 Bad Request");
    let broken = client.delete("broken").await.unwrap_err();
    assert_eq!(broken.class(), Class::Retry);
    let expected = [
        "PUT /records/www 192.0.2.1",
        "DELETE /records/gone ",
        "PUT /records/refused 192.0.2.1",
        "DELETE /records/broken ",
    ];
    assert_eq!(*seen.lock().unwrap(), expected);
}
