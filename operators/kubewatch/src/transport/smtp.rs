//! SMTP, as far as sending takes it: EHLO, STARTTLS, AUTH, MAIL, RCPT, DATA.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufStream};
use tokio::net::TcpStream;

use super::network::failed;
use super::{Mail, SendError, Trust, tls};
use crate::config::Smtp;

/// The port on which servers speak TLS from the start.
const TLS_PORT: &str = "465";
/// The longest line of an answer that is read.
const LINE: usize = 4096;

pub(super) async fn send(mail: &Mail) -> Result<(), SendError> {
    let of = &mail.server;
    let Some((host, port)) = of.smarthost.rsplit_once(':') else {
        return Err(SendError::Failed("smarthost is not host:port".to_owned()));
    };
    let stream = TcpStream::connect(&of.smarthost).await;
    let stream = stream.map_err(|error| failed("connect", error))?;
    if port == TLS_PORT {
        let mut session = Session::over(tls::connect(stream, host, &Trust::System).await?);
        session.answer("greeting", 2).await?;
        session.hello(of).await?;
        return session.deliver(mail).await;
    }
    let mut session = Session::over(stream);
    session.answer("greeting", 2).await?;
    session.hello(of).await?;
    if !of.require_tls {
        return session.deliver(mail).await;
    }
    if session.extension("STARTTLS").is_none() {
        return Err(SendError::Failed("the server has no STARTTLS".to_owned()));
    }
    session.ask("STARTTLS", "STARTTLS", 2).await?;
    let stream = session.stream.into_inner();
    let mut session = Session::over(tls::connect(stream, host, &Trust::System).await?);
    session.hello(of).await?;
    session.deliver(mail).await
}

struct Session<S> {
    stream: BufStream<S>,
    /// What the server says that it can do.
    extensions: Vec<String>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Session<S> {
    fn over(stream: S) -> Self {
        Self {
            stream: BufStream::new(stream),
            extensions: Vec::new(),
        }
    }

    async fn hello(&mut self, of: &Smtp) -> Result<(), SendError> {
        let name = match of.hello.as_str() {
            "" => "localhost",
            name => name,
        };
        let answer = self.ask("EHLO", &format!("EHLO {name}"), 2).await?;
        self.extensions = answer;
        Ok(())
    }

    /// The parameters of an extension, if the server has it.
    fn extension(&self, name: &str) -> Option<&str> {
        let mut parameters = self.extensions.iter().filter_map(|line| {
            let (found, rest) = line.split_once(' ').unwrap_or((line, ""));
            found.eq_ignore_ascii_case(name).then_some(rest)
        });
        parameters.next()
    }

    async fn deliver(&mut self, mail: &Mail) -> Result<(), SendError> {
        let of = &mail.server;
        self.authenticate(of).await?;
        let from = format!("MAIL FROM:<{}>", address(&of.from));
        self.ask("MAIL", &from, 2).await?;
        for to in of.to.split(',').map(address).filter(|to| !to.is_empty()) {
            self.ask("RCPT", &format!("RCPT TO:<{to}>"), 2).await?;
        }
        self.ask("DATA", "DATA", 3).await?;
        // A line that begins with a dot would end the message.
        let content = mail.content.replace("\r\n.", "\r\n..");
        self.ask("message", &format!("{content}\r\n."), 2).await?;
        // The message is accepted: whether the server says goodbye does not matter.
        let _ = self.ask("QUIT", "QUIT", 2).await;
        Ok(())
    }

    async fn authenticate(&mut self, of: &Smtp) -> Result<(), SendError> {
        let auth = &of.auth;
        let Some(mechanisms) = self.extension("AUTH").map(str::to_owned) else {
            return Ok(());
        };
        if auth.username.is_empty() {
            return Ok(());
        }
        for mechanism in mechanisms.split(' ').filter(|_| !auth.password.is_empty()) {
            if mechanism == "PLAIN" {
                let identity = [&*auth.identity, &auth.username, &auth.password].join("\0");
                let line = format!("AUTH PLAIN {}", STANDARD.encode(identity));
                self.ask("AUTH PLAIN", &line, 2).await?;
                return Ok(());
            }
            if mechanism == "LOGIN" {
                self.ask("AUTH LOGIN", "AUTH LOGIN", 3).await?;
                let user = STANDARD.encode(&auth.username);
                self.ask("AUTH LOGIN", &user, 3).await?;
                let password = STANDARD.encode(&auth.password);
                self.ask("AUTH LOGIN", &password, 2).await?;
                return Ok(());
            }
        }
        let message = format!("no way to authenticate: the server has {mechanisms}");
        Err(SendError::Failed(message))
    }

    /// Sends a line, and returns the lines of the answer, whose code begins with `class`. `what` names
    /// the line in errors: it may hold a password.
    async fn ask(&mut self, what: &str, line: &str, class: u8) -> Result<Vec<String>, SendError> {
        let written = async {
            self.stream.write_all(line.as_bytes()).await?;
            self.stream.write_all(b"\r\n").await?;
            self.stream.flush().await
        };
        written.await.map_err(|error| failed(what, error))?;
        self.answer(what, class).await
    }

    async fn answer(&mut self, what: &str, class: u8) -> Result<Vec<String>, SendError> {
        let mut lines = Vec::new();
        loop {
            let mut line = Vec::new();
            let mut limited = tokio::io::AsyncReadExt::take(&mut self.stream, LINE as u64);
            let read = limited.read_until(b'\n', &mut line).await;
            if read.map_err(|error| failed(what, error))? == 0 {
                return Err(SendError::Failed(format!("{what}: connection closed")));
            }
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            let (code, rest) = (
                line.get(..3).unwrap_or_default(),
                line.get(4..).unwrap_or_default(),
            );
            lines.push(rest.to_owned());
            if line.as_bytes().get(3) == Some(&b'-') {
                continue;
            }
            let is_wanted = code.as_bytes().first() == Some(&(b'0' + class));
            return match (is_wanted, code.starts_with('5') && what == "message") {
                (true, _) => Ok(lines),
                (false, true) => Err(SendError::Refused(line)),
                (false, false) => Err(SendError::Failed(format!("{what}: {line}"))),
            };
        }
    }
}

/// The address in `Name <address>`, or in `address`. Nothing that would end the line.
fn address(text: &str) -> String {
    let inside = text
        .rsplit_once('<')
        .and_then(|(_, rest)| rest.split_once('>'));
    let address = inside.map_or(text, |(address, _)| address).trim();
    address.chars().filter(|c| !c.is_control()).collect()
}
