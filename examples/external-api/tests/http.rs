//! The client of the provider, against a server on loopback.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use external_api_operator::Provider;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use tokio::net::TcpListener;

type Seen = Arc<Mutex<Vec<String>>>;

async fn answer(seen: Seen, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let line = format!("{} {}", request.method(), request.uri().path());
    let host = request.uri().path().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    seen.lock()
        .unwrap()
        .push(format!("{line} {}", String::from_utf8_lossy(&body)));
    let refused = host == "/records/refused";
    let status = if refused {
        StatusCode::BAD_REQUEST
    } else {
        StatusCode::OK
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
async fn client_sends_the_request_and_reads_the_status() {
    let (address, seen) = serve().await;
    let client: Client<HttpConnector, String> = Client::builder(TokioExecutor::new()).build_http();
    let put = |host: &str| {
        let request = Request::put(format!("{address}/records/{host}"));
        Provider::send(&client, request.body("192.0.2.1".to_owned()).unwrap())
    };
    assert_eq!(put("www").await.unwrap(), StatusCode::OK);
    assert_eq!(put("refused").await.unwrap(), StatusCode::BAD_REQUEST);
    assert_eq!(
        *seen.lock().unwrap(),
        [
            "PUT /records/www 192.0.2.1",
            "PUT /records/refused 192.0.2.1"
        ]
    );
}
