//! Private keys from a seed, and signatures with them.
//!
//! The arithmetic takes a time that depends on the keys: a program that can measure a rendering to the
//! nanosecond can read its values anyway.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use num_bigint::BigUint;
use rand::Rng as _;
use ring::digest;
use ring::signature::{Ed25519KeyPair, KeyPair as _};

use super::{Context, fail};
use crate::der;
use crate::template::error::Error;

type Made<T> = std::result::Result<T, Error>;

/// A private key.
pub(super) enum Key {
    Rsa(Rsa),
    /// One on the curve P-256.
    Ecdsa(BigUint),
    Ed25519([u8; 32]),
    Dsa(Vec<u8>),
}

pub(super) struct Rsa {
    n: BigUint,
    e: BigUint,
    d: BigUint,
    p: BigUint,
    q: BigUint,
}

/// Text with a body in base64 between a header and a footer.
pub(super) fn pem(label: &str, body: &[u8]) -> String {
    let encoded = STANDARD.encode(body);
    let mut out = format!("-----BEGIN {label}-----\n");
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        out.push_str(line);
        out.push('\n');
        rest = after;
    }
    out.push_str(&format!("-----END {label}-----\n"));
    out
}

/// The label and body of the first block of a text.
pub(super) fn read_pem(text: &str) -> Option<(String, Vec<u8>)> {
    let (_, rest) = text.split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    let (body, _) = rest.split_once("-----END ")?;
    // Headers end with an empty line.
    let body = match body.split_once("\n\n") {
        Some((headers, body)) if headers.contains(':') => body,
        _ => body,
    };
    let body: String = body.chars().filter(|c| !c.is_whitespace()).collect();
    Some((label.to_owned(), STANDARD.decode(body).ok()?))
}

fn random_bits(context: &Context<'_>, bits: usize) -> BigUint {
    let mut bytes = vec![0; bits.div_ceil(8)];
    context.env.random().fill_bytes(&mut bytes);
    BigUint::from_bytes_be(&bytes) >> (bytes.len() * 8 - bits)
}

/// A number from one to below a limit.
fn random_below(context: &Context<'_>, limit: &BigUint) -> BigUint {
    let bits = usize::try_from(limit.bits()).unwrap_or(0);
    loop {
        let candidate = random_bits(context, bits);
        if candidate > BigUint::ZERO && candidate < *limit {
            return candidate;
        }
    }
}

const SMALL_PRIMES: [u32; 54] = [
    2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97,
    101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167, 173, 179, 181, 191, 193,
    197, 199, 211, 223, 227, 229, 233, 239, 241, 251,
];

/// Miller's and Rabin's test.
fn is_prime(context: &Context<'_>, n: &BigUint, rounds: usize) -> bool {
    let one = BigUint::from(1_u32);
    if *n <= one {
        return false;
    }
    for small in SMALL_PRIMES {
        if n % small == BigUint::ZERO {
            return *n == BigUint::from(small);
        }
    }
    let minus_one = n - &one;
    let twos = minus_one.trailing_zeros().unwrap_or(0);
    let odd = &minus_one >> twos;
    'rounds: for _ in 0..rounds {
        let base = random_below(context, &minus_one);
        let mut x = base.modpow(&odd, n);
        if x == one || x == minus_one {
            continue;
        }
        for _ in 1..twos {
            x = (&x * &x) % n;
            if x == minus_one {
                continue 'rounds;
            }
        }
        return false;
    }
    true
}

/// A prime whose two highest bits are set.
fn prime(context: &Context<'_>, bits: usize) -> Made<BigUint> {
    loop {
        context.env.step(2_000)?;
        let mut candidate = random_bits(context, bits);
        candidate.set_bit(0, true);
        candidate.set_bit(bits as u64 - 1, true);
        candidate.set_bit(bits as u64 - 2, true);
        if is_prime(context, &candidate, 20) {
            return Ok(candidate);
        }
    }
}

impl Rsa {
    pub(super) fn generate(context: &Context<'_>, bits: usize) -> Made<Self> {
        let e = BigUint::from(65_537_u32);
        loop {
            let (p, q) = (prime(context, bits / 2)?, prime(context, bits / 2)?);
            let phi = (&p - 1_u32) * (&q - 1_u32);
            if p == q {
                continue;
            }
            if let Some(d) = e.modinv(&phi) {
                return Ok(Self {
                    n: &p * &q,
                    e,
                    d,
                    p,
                    q,
                });
            }
        }
    }

    fn pkcs1(&self) -> Option<Vec<u8>> {
        let one = BigUint::from(1_u32);
        let parts = [
            BigUint::ZERO,
            self.n.clone(),
            self.e.clone(),
            self.d.clone(),
            self.p.clone(),
            self.q.clone(),
            &self.d % (&self.p - &one),
            &self.d % (&self.q - &one),
            self.q.modinv(&self.p)?,
        ];
        let body: Vec<u8> = parts.iter().flat_map(der::integer).collect();
        Some(der::sequence(&body))
    }

    fn from_pkcs1(body: &[u8]) -> Option<Self> {
        let mut reader = der::Reader::new(body).sequence()?;
        let version = reader.integer()?;
        if version != BigUint::ZERO {
            return None;
        }
        Some(Self {
            n: reader.integer()?,
            e: reader.integer()?,
            d: reader.integer()?,
            p: reader.integer()?,
            q: reader.integer()?,
        })
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        // What says that the digest is one of SHA-256.
        const PREFIX: [u8; 19] = [
            0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02,
            0x01, 0x05, 0x00, 0x04, 0x20,
        ];
        let sum = digest::digest(&digest::SHA256, message);
        let length = usize::try_from(self.n.bits().div_ceil(8)).unwrap_or(0);
        let mut padded = vec![0x00, 0x01];
        let filled = length.saturating_sub(PREFIX.len() + sum.as_ref().len() + 1);
        padded.resize(filled.max(2), 0xff);
        padded.push(0x00);
        padded.extend_from_slice(&PREFIX);
        padded.extend_from_slice(sum.as_ref());
        let signature = BigUint::from_bytes_be(&padded).modpow(&self.d, &self.n);
        fixed(&signature, length)
    }
}

/// A number in so many bytes.
fn fixed(number: &BigUint, length: usize) -> Vec<u8> {
    let bytes = number.to_bytes_be();
    let mut out = vec![0; length.saturating_sub(bytes.len())];
    out.extend_from_slice(&bytes);
    out
}

/// The curve P-256.
mod p256 {
    use num_bigint::BigUint;

    fn hex(digits: &str) -> BigUint {
        BigUint::parse_bytes(digits.as_bytes(), 16).unwrap_or_default()
    }

    pub(super) fn order() -> BigUint {
        hex("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551")
    }

    fn field() -> BigUint {
        hex("ffffffff00000001000000000000000000000000ffffffffffffffffffffffff")
    }

    type Point = Option<(BigUint, BigUint)>;

    fn add(a: &Point, b: &Point, p: &BigUint) -> Point {
        let (Some((ax, ay)), Some((bx, by))) = (a, b) else {
            return a.clone().or_else(|| b.clone());
        };
        let slope = if ax == bx {
            if ay != by || *ay == BigUint::ZERO {
                return None;
            }
            let numerator = ax * ax * 3_u32 + p - 3_u32;
            numerator * (ay * 2_u32).modinv(p)?
        } else {
            let numerator = by + p - ay;
            numerator * ((bx + p - ax) % p).modinv(p)?
        } % p;
        let x = (&slope * &slope + p + p - ax - bx) % p;
        let y = (slope * (ax + p - &x) + p - ay) % p;
        Some((x, y))
    }

    /// The base point so many times.
    pub(super) fn multiply(scalar: &BigUint) -> Point {
        let p = field();
        let mut step: Point = Some((
            hex("6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"),
            hex("4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"),
        ));
        let mut sum: Point = None;
        for bit in 0..scalar.bits() {
            if scalar.bit(bit) {
                sum = add(&sum, &step, &p);
            }
            step = add(&step, &step, &p);
        }
        sum
    }
}

/// The object identifiers of keys and signatures.
pub(super) mod oid {
    pub(in super::super) const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
    pub(in super::super) const RSA_SHA256: &[u8] =
        &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b];
    pub(in super::super) const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
    pub(in super::super) const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
    pub(in super::super) const ECDSA_SHA256: &[u8] =
        &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
    pub(in super::super) const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
}

impl Key {
    pub(super) fn rsa(context: &Context<'_>, bits: usize) -> Made<Self> {
        Rsa::generate(context, bits).map(Self::Rsa)
    }

    /// The point of the public key, uncompressed.
    fn point(scalar: &BigUint) -> Vec<u8> {
        let (x, y) = p256::multiply(scalar).unwrap_or_default();
        [&[4][..], &fixed(&x, 32), &fixed(&y, 32)].concat()
    }

    fn ed25519(seed: &[u8; 32]) -> Made<Ed25519KeyPair> {
        Ed25519KeyPair::from_seed_unchecked(seed)
            .map_err(|_| Error::plain("failed to generate private key"))
    }

    /// The public key as a certificate holds it.
    pub(super) fn public(&self) -> Made<Vec<u8>> {
        let null = der::null();
        Ok(match self {
            Self::Rsa(rsa) => {
                let algorithm = der::sequence(&[der::oid(oid::RSA), null].concat());
                let key = der::sequence(&[der::integer(&rsa.n), der::integer(&rsa.e)].concat());
                der::sequence(&[algorithm, der::bits(&key)].concat())
            }
            Self::Ecdsa(scalar) => {
                let algorithm = der::sequence(&[der::oid(oid::EC), der::oid(oid::P256)].concat());
                der::sequence(&[algorithm, der::bits(&Self::point(scalar))].concat())
            }
            Self::Ed25519(seed) => {
                let pair = Self::ed25519(seed)?;
                let algorithm = der::sequence(&der::oid(oid::ED25519));
                der::sequence(&[algorithm, der::bits(pair.public_key().as_ref())].concat())
            }
            Self::Dsa(_) => return unsupported(),
        })
    }

    /// What names the signature that this key makes.
    pub(super) fn algorithm(&self) -> Vec<u8> {
        match self {
            Self::Rsa(_) => der::sequence(&[der::oid(oid::RSA_SHA256), der::null()].concat()),
            Self::Ecdsa(_) => der::sequence(&der::oid(oid::ECDSA_SHA256)),
            Self::Ed25519(_) | Self::Dsa(_) => der::sequence(&der::oid(oid::ED25519)),
        }
    }

    pub(super) fn sign(&self, context: &Context<'_>, message: &[u8]) -> Made<Vec<u8>> {
        match self {
            Self::Rsa(rsa) => Ok(rsa.sign(message)),
            Self::Ed25519(seed) => Ok(Self::ed25519(seed)?.sign(message).as_ref().to_vec()),
            Self::Ecdsa(scalar) => {
                let order = p256::order();
                let sum = digest::digest(&digest::SHA256, message);
                let sum = BigUint::from_bytes_be(sum.as_ref());
                loop {
                    let k = random_below(context, &order);
                    let (Some((x, _)), Some(inverse)) = (p256::multiply(&k), k.modinv(&order))
                    else {
                        continue;
                    };
                    let r = x % &order;
                    let s = inverse * (&sum + &r * scalar) % &order;
                    if r != BigUint::ZERO && s != BigUint::ZERO {
                        return Ok(der::sequence(
                            &[der::integer(&r), der::integer(&s)].concat(),
                        ));
                    }
                }
            }
            Self::Dsa(_) => unsupported(),
        }
    }

    pub(super) fn to_pem(&self) -> Made<String> {
        match self {
            Self::Rsa(rsa) => match rsa.pkcs1() {
                Some(body) => Ok(pem("RSA PRIVATE KEY", &body)),
                None => fail("failed to generate private key"),
            },
            Self::Ecdsa(scalar) => {
                let body = [
                    der::integer(&BigUint::from(1_u32)),
                    der::octets(&fixed(scalar, 32)),
                    der::tagged(0xa0, &der::oid(oid::P256)),
                    der::tagged(0xa1, &der::bits(&Self::point(scalar))),
                ]
                .concat();
                Ok(pem("EC PRIVATE KEY", &der::sequence(&body)))
            }
            Self::Ed25519(seed) => {
                let body = [
                    der::integer(&BigUint::ZERO),
                    der::sequence(&der::oid(oid::ED25519)),
                    der::octets(&der::octets(seed)),
                ]
                .concat();
                Ok(pem("PRIVATE KEY", &der::sequence(&body)))
            }
            Self::Dsa(body) => Ok(pem("DSA PRIVATE KEY", body)),
        }
    }

    /// Reads a key as PEM.
    pub(super) fn from_pem(text: &str) -> std::result::Result<Self, String> {
        let Some((label, body)) = read_pem(text) else {
            return Err("no PEM data in input".to_owned());
        };
        match label.as_str() {
            "PRIVATE KEY" => from_pkcs8(&body)
                .ok_or_else(|| "decoding PEM as PKCS#8: asn1: structure error".to_owned()),
            "RSA PRIVATE KEY" => Rsa::from_pkcs1(&body).map(Self::Rsa).ok_or_else(|| {
                "parsing RSA private key from PEM: asn1: structure error".to_owned()
            }),
            "EC PRIVATE KEY" => from_sec1(&body)
                .ok_or_else(|| "parsing EC private key from PEM: asn1: structure error".to_owned()),
            "DSA PRIVATE KEY" => Ok(Self::Dsa(body)),
            other => match other.strip_suffix(" PRIVATE KEY") {
                Some(kind) => Err(format!("invalid private key type {kind}")),
                None => Err(format!("no private key data in PEM block of type {other}")),
            },
        }
    }
}

fn unsupported<T>() -> Made<T> {
    fail("x509: only RSA, ECDSA and Ed25519 keys supported")
}

fn from_sec1(body: &[u8]) -> Option<Key> {
    let mut reader = der::Reader::new(body).sequence()?;
    reader.integer()?;
    let scalar = BigUint::from_bytes_be(reader.take(0x04)?);
    (scalar > BigUint::ZERO && scalar < p256::order()).then_some(Key::Ecdsa(scalar))
}

fn from_pkcs8(body: &[u8]) -> Option<Key> {
    let mut reader = der::Reader::new(body).sequence()?;
    reader.integer()?;
    let mut algorithm = reader.sequence()?;
    let found = algorithm.take(0x06)?;
    let key = reader.take(0x04)?;
    match found {
        oid::RSA => Rsa::from_pkcs1(key).map(Key::Rsa),
        oid::EC => from_sec1(key),
        oid::ED25519 => {
            let seed = der::Reader::new(key).take(0x04)?;
            Some(Key::Ed25519(seed.try_into().ok()?))
        }
        _ => None,
    }
}

/// A key of a kind as PEM.
pub(super) fn generate_pem(context: &Context<'_>, kind: &str) -> Made<String> {
    match kind {
        "" | "rsa" => Key::rsa(context, 4096)?.to_pem(),
        "ecdsa" => Key::Ecdsa(random_below(context, &p256::order())).to_pem(),
        "ed25519" => {
            let mut seed = [0; 32];
            context.env.random().fill_bytes(&mut seed);
            Key::Ed25519(seed).to_pem()
        }
        "dsa" => dsa(context),
        other => Ok(format!("Unknown type {other}")),
    }
}

/// A DSA key with numbers of 2048 and 256 bits.
fn dsa(context: &Context<'_>) -> Made<String> {
    let one = BigUint::from(1_u32);
    let q = prime(context, 256)?;
    let p = loop {
        context.env.step(2_000)?;
        let mut candidate = random_bits(context, 2048);
        candidate.set_bit(2047, true);
        // One more than a multiple of twice the smaller prime.
        let rest = &candidate % (&q * 2_u32);
        candidate = candidate - rest + &one;
        if candidate.bits() == 2048 && is_prime(context, &candidate, 20) {
            break candidate;
        }
    };
    let exponent = (&p - &one) / &q;
    let mut h = BigUint::from(2_u32);
    let g = loop {
        let g = h.modpow(&exponent, &p);
        if g > one {
            break g;
        }
        h += 1_u32;
    };
    let x = random_below(context, &q);
    let y = g.modpow(&x, &p);
    let body: Vec<u8> = [BigUint::ZERO, p, q, g, y, x]
        .iter()
        .flat_map(der::integer)
        .collect();
    Key::Dsa(der::sequence(&body)).to_pem()
}
