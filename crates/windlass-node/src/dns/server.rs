//! The name server on its sockets.

mod tcp;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use async_trait::async_trait;
use hickory_server::Server;
use hickory_server::net::runtime::Time;
use hickory_server::proto::op::{Metadata, OpCode, ResponseCode};
use hickory_server::proto::rr::rdata::{A, CNAME, PTR, SOA, SRV};
use hickory_server::proto::rr::{Name, RData, Record, RecordType};
use hickory_server::server::{Request, RequestHandler, ResponseHandler, ResponseInfo};
use hickory_server::zone_handler::MessageResponseBuilder;
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::watch;

use super::CLUSTER_DOMAIN;
use super::zone::{self, Answer};
use crate::network::Picture;

/// How long an answer may be kept, in seconds; CoreDNS says the same.
const TTL: u32 = 5;
/// What connections may take: hardly any client asks by one.
const LIMITS: tcp::Limits = tcp::Limits {
    idle: Duration::from_secs(10),
    all: 64,
    of_one: 16,
};

/// Answers on an address until the future is dropped.
pub async fn serve(address: SocketAddr, pictures: watch::Receiver<Picture>) -> io::Result<()> {
    let names = Names { pictures };
    let mut server = Server::new(names.clone());
    server.register_socket(UdpSocket::bind(address).await?);
    let connections = tcp::serve(TcpListener::bind(address).await?, names, LIMITS);
    tokio::select! {
        ended = server.block_until_done() => ended.map_err(io::Error::other),
        () = connections => Ok(()),
    }
}

/// Answers by the newest picture.
#[derive(Clone)]
struct Names {
    pictures: watch::Receiver<Picture>,
}

/// What is sent back.
struct Reply {
    code: ResponseCode,
    answers: Vec<Record>,
    additional: Vec<Record>,
}

#[async_trait]
impl RequestHandler for Names {
    async fn handle_request<R: ResponseHandler, T: Time>(
        &self,
        request: &Request,
        mut handle: R,
    ) -> ResponseInfo {
        let mut metadata = Metadata::response_from_request(&request.metadata);
        metadata.authoritative = true;
        let reply = match request.request_info() {
            Ok(info) if info.metadata.op_code == OpCode::Query => {
                let name = info.query.original().name().clone();
                self.reply(&name, info.query.query_type())
            }
            Ok(_) => Reply::code(ResponseCode::NotImp),
            Err(_) => Reply::code(ResponseCode::FormErr),
        };
        metadata.response_code = reply.code;
        // Whoever hears that there is nothing may remember it for a while.
        let nothing = reply.answers.is_empty().then(authority).flatten();
        let response = MessageResponseBuilder::from_message_request(request).build(
            metadata,
            &reply.answers,
            [],
            &nothing,
            &reply.additional,
        );
        match handle.send_response(response).await {
            Ok(info) => info,
            Err(error) => {
                tracing::debug!(%error, "cannot answer a question about a name");
                let mut metadata = Metadata::response_from_request(&request.metadata);
                metadata.response_code = ResponseCode::ServFail;
                hickory_server::proto::op::Header {
                    metadata,
                    counts: hickory_server::proto::op::HeaderCounts::default(),
                }
                .into()
            }
        }
    }
}

impl Reply {
    fn code(code: ResponseCode) -> Self {
        Self::of(code, Vec::new())
    }

    fn of(code: ResponseCode, answers: Vec<Record>) -> Self {
        Self {
            code,
            answers,
            additional: Vec::new(),
        }
    }
}

impl Names {
    fn reply(&self, name: &Name, wanted: RecordType) -> Reply {
        let picture = self.pictures.borrow();
        let text = name.to_ascii().to_ascii_lowercase();
        let text = text.trim_end_matches('.');
        let wants = |kind: RecordType| wanted == kind || wanted == RecordType::ANY;
        if let Some(reverse) = text.strip_suffix(".in-addr.arpa") {
            let found = backwards(reverse).and_then(|address| zone::name_of(&picture, address));
            let found = found.and_then(|found| Name::from_ascii(found + ".").ok());
            return match found {
                Some(found) if wants(RecordType::PTR) => {
                    let record = record(name, RData::PTR(PTR(found)));
                    Reply::of(ResponseCode::NoError, vec![record])
                }
                Some(_) => Reply::code(ResponseCode::NoError),
                None => Reply::code(ResponseCode::NXDomain),
            };
        }
        match zone::answer(&picture, text) {
            Answer::Unknown => Reply::code(ResponseCode::NXDomain),
            Answer::Addresses(list) if wants(RecordType::A) => {
                Reply::of(ResponseCode::NoError, addresses(name, &list))
            }
            Answer::Nothing | Answer::Addresses(_) => Reply::code(ResponseCode::NoError),
            Answer::Alias(other) => {
                let other = Name::from_ascii(other.trim_end_matches('.').to_owned() + ".").ok();
                let alias = other.map(|other| record(name, RData::CNAME(CNAME(other))));
                Reply::of(ResponseCode::NoError, alias.into_iter().collect())
            }
            Answer::Ports(ports) => {
                let mut reply = Reply::code(ResponseCode::NoError);
                for (port, target) in ports.iter().filter(|_| wants(RecordType::SRV)) {
                    let Ok(host) = Name::from_ascii(format!("{target}.")) else {
                        continue;
                    };
                    if let Answer::Addresses(list) = zone::answer(&picture, target) {
                        reply.additional.extend(addresses(&host, &list));
                    }
                    let srv = RData::SRV(SRV::new(0, 100, *port, host));
                    reply.answers.push(record(name, srv));
                }
                reply
            }
        }
    }
}

fn record(name: &Name, data: RData) -> Record {
    Record::from_rdata(name.clone(), TTL, data)
}

fn addresses(name: &Name, list: &[Ipv4Addr]) -> Vec<Record> {
    list.iter()
        .map(|ip| record(name, RData::A(A(*ip))))
        .collect()
}

/// The address of `9.0.244.10`, which is written from its end.
fn backwards(text: &str) -> Option<Ipv4Addr> {
    let address: Ipv4Addr = text.parse().ok()?;
    let [a, b, c, d] = address.octets();
    Some(Ipv4Addr::new(d, c, b, a))
}

/// Who says that there is nothing.
fn authority() -> Option<Record> {
    let zone = Name::from_ascii(format!("{CLUSTER_DOMAIN}.")).ok()?;
    let server = Name::from_ascii(format!("ns.dns.{CLUSTER_DOMAIN}.")).ok()?;
    let person = Name::from_ascii(format!("hostmaster.{CLUSTER_DOMAIN}.")).ok()?;
    let soa = SOA::new(server, person, 1, 7200, 1800, 86400, TTL);
    Some(record(&zone, RData::SOA(soa)))
}

/// The address that a cluster's name server listens on.
pub(crate) fn address(host: impl Into<IpAddr>) -> SocketAddr {
    SocketAddr::new(host.into(), 53)
}
