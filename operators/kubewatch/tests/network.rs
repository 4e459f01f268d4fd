//! The network, against an HTTP server and a mail server on loopback.

use std::sync::{Arc, Mutex};

use kubewatch_operator::config::{Smtp, SmtpAuth};
use kubewatch_operator::transport::{Mail, Network, Outgoing, Post, SendError, Transport, Trust};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

type Seen = Arc<Mutex<Vec<String>>>;

/// A server that answers every request like this; and what it was sent.
async fn http_server(answer: &'static str) -> (String, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook?secret=s", listener.local_addr().unwrap());
    let seen = Seen::default();
    let shown = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = BufReader::new(stream);
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                stream.read_line(&mut line).await.unwrap();
                if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
                    length = value.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
                head.push_str(&line);
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).await.unwrap();
            let body = String::from_utf8(body).unwrap();
            shown.lock().unwrap().push(format!("{head}\n{body}"));
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (url, seen)
}

fn post(url: &str) -> Outgoing {
    Outgoing::Post(Post {
        url: url.to_owned(),
        content_type: "application/json",
        authorization: Some("Bearer t".to_owned()),
        body: "{\"a\":1}".to_owned(),
        trust: Trust::System,
    })
}

#[tokio::test]
async fn request_reaches_an_http_server() {
    let (url, seen) = http_server("HTTP/1.1 204 No Content\r\n\r\n").await;
    Network.send(&post(&url)).await.unwrap();
    let seen = seen.lock().unwrap().join("\n");
    assert!(seen.starts_with("POST /hook?secret=s HTTP/1.1"), "{seen}");
    assert!(
        seen.contains("content-type: application/json") && seen.ends_with("{\"a\":1}"),
        "{seen}"
    );
    assert!(seen.contains("authorization: Bearer t"), "{seen}");
}

#[tokio::test]
async fn answers_say_whether_to_try_again() {
    for (answer, expected) in [
        (
            "HTTP/1.1 503 Down\r\ncontent-length: 0\r\n\r\n",
            Some(false),
        ),
        (
            "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
            Some(false),
        ),
        ("HTTP/1.1 400 Bad\r\ncontent-length: 0\r\n\r\n", Some(true)),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 38\r\n\r\n{\"ok\":false,\"error\":\"invalid_auth\"}    ",
            Some(false),
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 30\r\n\r\n{\"ok\":false,\"error\":\"no_text\"} ",
            Some(true),
        ),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", None),
    ] {
        let (url, _) = http_server(answer).await;
        let refused = match Network.send(&post(&url)).await {
            Ok(()) => None,
            Err(SendError::Failed(_)) => Some(false),
            Err(SendError::Refused(_)) => Some(true),
        };
        assert_eq!(refused, expected, "{answer}");
    }
}

#[tokio::test]
async fn error_does_not_show_the_url() {
    for url in [
        "http://127.0.0.1:1/secret",
        "no url secret",
        "https://127.0.0.1:1/secret",
    ] {
        let error = Network.send(&post(url)).await.unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }
}

/// A mail server; and the lines it was sent.
async fn mail_server() -> (String, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let seen = Seen::default();
    let shown = Arc::clone(&seen);
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = BufReader::new(stream);
        stream.write_all(b"220 ready\r\n").await.unwrap();
        let mut in_data = false;
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await.unwrap() == 0 {
                return;
            }
            let line = line.trim_end().to_owned();
            let answer = match line.split(' ').next().unwrap_or_default() {
                "." if in_data => {
                    in_data = false;
                    "250 queued"
                }
                _ if in_data => "",
                "EHLO" => "250-here\r\n250-SIZE 1000\r\n250 AUTH LOGIN PLAIN",
                "AUTH" if line == "AUTH LOGIN" => "334 VXNlcm5hbWU6",
                "dXNlcg==" => "334 UGFzc3dvcmQ6",
                "cGFzcw==" => "235 welcome",
                "DATA" => {
                    in_data = true;
                    "354 go on"
                }
                "QUIT" => "221 bye",
                "MAIL" | "RCPT" => "250 ok",
                _ => "500 what",
            };
            shown.lock().unwrap().push(line);
            if !answer.is_empty() {
                stream
                    .write_all(format!("{answer}\r\n").as_bytes())
                    .await
                    .unwrap();
            }
        }
    });
    (address, seen)
}

fn mail(smarthost: String, require_tls: bool) -> Outgoing {
    Outgoing::Mail(Mail {
        server: Smtp {
            to: "Team <a@example.com>, b@example.com".to_owned(),
            from: "kubewatch@example.com".to_owned(),
            smarthost,
            auth: SmtpAuth {
                username: "user".to_owned(),
                password: "pass".to_owned(),
                ..SmtpAuth::default()
            },
            require_tls,
            hello: "cluster".to_owned(),
            ..Smtp::default()
        },
        content: "Subject: s\r\n\r\ntext\r\n.\r\nmore".to_owned(),
    })
}

#[tokio::test]
async fn mail_reaches_a_mail_server() {
    let (address, seen) = mail_server().await;
    Network.send(&mail(address, false)).await.unwrap();
    let expected = [
        "EHLO cluster",
        "AUTH LOGIN",
        "dXNlcg==",
        "cGFzcw==",
        "MAIL FROM:<kubewatch@example.com>",
        "RCPT TO:<a@example.com>",
        "RCPT TO:<b@example.com>",
        "DATA",
        "Subject: s",
        "",
        "text",
        "..",
        "more",
        ".",
        "QUIT",
    ];
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[tokio::test]
async fn mail_is_not_sent_in_the_clear_where_tls_is_required() {
    let (address, seen) = mail_server().await;
    let error = Network.send(&mail(address, true)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot send message: the server has no STARTTLS"
    );
    assert_eq!(*seen.lock().unwrap(), ["EHLO cluster"]);
}
