//! Certificates.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Zoned};
use num_bigint::BigUint;
use rand::Rng as _;

use super::keys::{Key, pem, read_pem};
use super::{Context, Result, fail, int};
use crate::der;
use crate::layout;
use crate::template::error::Error;
use crate::template::object::Object;
use crate::template::print;
use crate::template::value::Value;

type Made<T> = std::result::Result<T, Error>;

const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
const SUBJECT_KEY_ID: &[u8] = &[0x55, 0x1d, 0x0e];
const AUTHORITY_KEY_ID: &[u8] = &[0x55, 0x1d, 0x23];
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
const SERVER: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01];
const CLIENT: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02];

/// What a certificate says.
struct Subject<'a> {
    name: &'a str,
    ips: Vec<IpAddr>,
    dns: Vec<String>,
    days: i64,
    authority: bool,
}

/// Who signs.
struct Issuer<'a> {
    /// The name, as it is in the issuer's certificate.
    name: Vec<u8>,
    key: &'a Key,
    key_id: Option<Vec<u8>>,
}

fn key(context: &Context<'_>, given: Option<&str>) -> Made<Key> {
    match given {
        None => Key::rsa(context, 2048),
        Some(text) => {
            Key::from_pem(text).map_err(|why| Error::plain(format!("parsing private key: {why}")))
        }
    }
}

fn made(cert: &[u8], key: &Key) -> Result {
    Ok(Value::object(Object::Certificate {
        cert: pem("CERTIFICATE", cert),
        key: key.to_pem()?,
    }))
}

/// A certificate that others can be signed with.
pub(super) fn authority(
    context: &Context<'_>,
    name: &str,
    days: i64,
    given: Option<&str>,
) -> Result {
    let key = key(context, given)?;
    let subject = Subject {
        name,
        ips: Vec::new(),
        dns: Vec::new(),
        days,
        authority: true,
    };
    let issuer = Issuer {
        name: distinguished(name),
        key: &key,
        key_id: None,
    };
    made(&certificate(context, &subject, &key, &issuer)?, &key)
}

fn subject<'a>(args: &[Value], name: &'a str) -> Made<Subject<'a>> {
    let mut ips = Vec::new();
    for ip in args[1].items().unwrap_or_default().iter() {
        let Value::Str(_) = ip else {
            return fail(format!(
                "error parsing ip: {} is not a string",
                print::shown(ip)
            ));
        };
        match ip.text().parse() {
            Ok(parsed) => ips.push(parsed),
            Err(_) => return fail(format!("error parsing ip: {}", ip.text())),
        }
    }
    let mut dns = Vec::new();
    for one in args[2].items().unwrap_or_default().iter() {
        let Value::Str(_) = one else {
            return fail(format!(
                "error processing alternate dns name: {} is not a string",
                print::shown(one)
            ));
        };
        dns.push(one.text().into_owned());
    }
    Ok(Subject {
        name,
        ips,
        dns,
        days: int(&args[3]),
        authority: false,
    })
}

/// A certificate that signs itself.
pub(super) fn self_signed(context: &Context<'_>, args: &[Value], given: Option<&str>) -> Result {
    let key = key(context, given)?;
    let name = args[0].text();
    let subject = subject(args, &name)?;
    let issuer = Issuer {
        name: distinguished(&name),
        key: &key,
        key_id: None,
    };
    made(&certificate(context, &subject, &key, &issuer)?, &key)
}

/// A certificate that an authority signs.
pub(super) fn signed(context: &Context<'_>, args: &[Value], given: Option<&str>) -> Result {
    let key = key(context, given)?;
    let (ca_cert, ca_key) = match &args[4] {
        Value::Object(object) => match &**object {
            Object::Certificate { cert, key } => (cert.clone(), key.clone()),
            _ => return fail("unable to decode certificate"),
        },
        _ => return fail("unable to decode certificate"),
    };
    let Some((_, body)) = read_pem(&ca_cert) else {
        return fail("unable to decode certificate");
    };
    let Some((name, key_id)) = read_subject(&body) else {
        return fail(
            "error parsing certificate: decodedSignerCert.Bytes: x509: malformed certificate",
        );
    };
    let signer = Key::from_pem(&ca_key)
        .map_err(|why| Error::plain(format!("error parsing private key: {why}")))?;
    let own_name = args[0].text();
    let subject = subject(args, &own_name)?;
    let issuer = Issuer {
        name,
        key: &signer,
        key_id,
    };
    made(&certificate(context, &subject, &key, &issuer)?, &key)
}

/// A certificate and a key that are given.
pub(super) fn custom(cert: &str, key: &str) -> Result {
    let decode = |text: &str, what: &str| match STANDARD.decode(text) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(_) => fail(format!("unable to decode base64 {what}")),
    };
    let cert = decode(cert, "certificate")?;
    let key = decode(key, "private key")?;
    let Some((_, body)) = read_pem(&cert) else {
        return fail("unable to decode certificate");
    };
    if read_subject(&body).is_none() {
        return fail("error parsing certificate: decodedCert.Bytes: x509: malformed certificate");
    }
    if let Err(why) = Key::from_pem(&key) {
        return fail(format!("error parsing private key: {why}"));
    }
    Ok(Value::object(Object::Certificate { cert, key }))
}

/// The subject of a certificate, and the identifier of its key.
fn read_subject(certificate: &[u8]) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let mut body = der::Reader::new(certificate).sequence()?.sequence()?;
    let (tag, ..) = body.next()?;
    if tag == 0xa0 {
        body.integer()?;
    }
    body.sequence()?;
    body.sequence()?;
    body.sequence()?;
    let (_, _, subject) = body.next()?;
    body.sequence()?;
    let mut key_id = None;
    while let Some((tag, inner, _)) = body.next() {
        if tag != 0xa3 {
            continue;
        }
        let mut extensions = der::Reader::new(inner).sequence()?;
        while let Some(mut extension) = extensions.sequence() {
            if extension.take(0x06)? == SUBJECT_KEY_ID {
                let octets = extension.take(0x04)?;
                key_id = der::Reader::new(octets).take(0x04).map(<[u8]>::to_vec);
            }
        }
    }
    Some((subject.to_vec(), key_id))
}

/// A name that is a common name only.
fn distinguished(name: &str) -> Vec<u8> {
    if name.is_empty() {
        return der::sequence(&[]);
    }
    let is_printable = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b" '()+,-./:=?*&".contains(&byte));
    let text = der::tagged(if is_printable { 0x13 } else { 0x0c }, name.as_bytes());
    let attribute = der::sequence(&[der::oid(COMMON_NAME), text].concat());
    der::sequence(&der::set(&attribute))
}

fn extension(id: &[u8], critical: bool, body: &[u8]) -> Vec<u8> {
    let mut parts = der::oid(id);
    if critical {
        parts.extend(der::tagged(0x01, &[0xff]));
    }
    parts.extend(der::octets(body));
    der::sequence(&parts)
}

fn time(zoned: &Zoned) -> Vec<u8> {
    let utc = zoned.with_time_zone(TimeZone::UTC);
    if (1950..2050).contains(&utc.year()) {
        der::tagged(0x17, layout::format("060102150405Z", &utc).as_bytes())
    } else {
        der::tagged(0x18, layout::format("20060102150405Z", &utc).as_bytes())
    }
}

fn extensions(subject: &Subject<'_>, public: &[u8], issuer: &Issuer<'_>) -> Vec<u8> {
    let usage: &[u8] = if subject.authority {
        &[0x03, 0x02, 0x02, 0xa4]
    } else {
        &[0x03, 0x02, 0x05, 0xa0]
    };
    let extended = der::sequence(&[der::oid(SERVER), der::oid(CLIENT)].concat());
    let constraints = if subject.authority {
        der::sequence(&der::tagged(0x01, &[0xff]))
    } else {
        der::sequence(&[])
    };
    let mut all = vec![
        extension(KEY_USAGE, true, usage),
        extension(EXTENDED_KEY_USAGE, false, &extended),
        extension(BASIC_CONSTRAINTS, true, &constraints),
    ];
    if subject.authority {
        let sum = ring::digest::digest(&ring::digest::SHA256, public);
        let id = der::octets(&sum.as_ref()[..20]);
        all.push(extension(SUBJECT_KEY_ID, false, &id));
    }
    if let Some(id) = &issuer.key_id {
        let body = der::sequence(&der::tagged(0x80, id));
        all.push(extension(AUTHORITY_KEY_ID, false, &body));
    }
    if !subject.ips.is_empty() || !subject.dns.is_empty() {
        let mut names = Vec::new();
        for dns in &subject.dns {
            names.extend(der::tagged(0x82, dns.as_bytes()));
        }
        for ip in &subject.ips {
            names.extend(match ip {
                IpAddr::V4(ip) => der::tagged(0x87, &ip.octets()),
                IpAddr::V6(ip) => der::tagged(0x87, &ip.octets()),
            });
        }
        all.push(extension(ALTERNATIVE_NAMES, false, &der::sequence(&names)));
    }
    der::tagged(0xa3, &der::sequence(&all.concat()))
}

fn certificate(
    context: &Context<'_>,
    subject: &Subject<'_>,
    key: &Key,
    issuer: &Issuer<'_>,
) -> Made<Vec<u8>> {
    let mut serial = [0_u8; 16];
    context.env.random().fill_bytes(&mut serial);
    let now = &context.env.now;
    let hours = subject.days.saturating_mul(24);
    let end = hours
        .checked_mul(3600)
        .and_then(|seconds| now.checked_add(SignedDuration::from_secs(seconds)).ok())
        .unwrap_or_else(|| now.clone());
    let public = key.public()?;
    let body = [
        der::tagged(0xa0, &der::integer(&BigUint::from(2_u32))),
        der::integer(&BigUint::from_bytes_be(&serial)),
        issuer.key.algorithm(),
        issuer.name.clone(),
        der::sequence(&[time(now), time(&end)].concat()),
        distinguished(subject.name),
        public.clone(),
        extensions(subject, &public, issuer),
    ]
    .concat();
    let body = der::sequence(&body);
    let signature = issuer.key.sign(context, &body)?;
    Ok(der::sequence(
        &[body, issuer.key.algorithm(), der::bits(&signature)].concat(),
    ))
}
