//! Digests, passwords and ciphers.

use aes::Aes256;
use aes::cipher::{BlockCipherDecrypt as _, BlockCipherEncrypt as _, KeyInit as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rand::Rng as _;
use ring::{digest, hmac, pbkdf2};

use super::{Context, Result, Row, Type, certificates, fail, int, keys};
use crate::template::error::Error;
use crate::template::value::Value;

const S: Type = Type::Str;
const I: Type = Type::Int;
const L: Type = Type::List;
const C: Type = Type::Certificate;
/// What bcrypt's work is the power of two of.
const BCRYPT_COST: u32 = 10;
const BLOCK: usize = 16;

pub(super) const TABLE: &[Row] = &[
    ("sha1sum", &[S], None, |_, args| {
        Ok(hex(&digest::SHA1_FOR_LEGACY_USE_ONLY, args))
    }),
    ("sha256sum", &[S], None, |_, args| {
        Ok(hex(&digest::SHA256, args))
    }),
    ("sha512sum", &[S], None, |_, args| {
        Ok(hex(&digest::SHA512, args))
    }),
    ("adler32sum", &[S], None, |_, args| {
        Ok(Value::str(adler32(args[0].bytes()).to_string()))
    }),
    ("bcrypt", &[S], None, |context, args| {
        Ok(Value::str(bcrypt(context, args[0].bytes())?))
    }),
    ("htpasswd", &[S, S], None, |context, args| {
        let name = args[0].text();
        if name.contains(':') {
            return Ok(Value::str(format!("invalid username: {name}")));
        }
        Ok(Value::str(format!(
            "{name}:{}",
            bcrypt(context, args[1].bytes())?
        )))
    }),
    (
        "derivePassword",
        &[Type::Uint32, S, S, S, S],
        None,
        derive_password,
    ),
    ("encryptAES", &[S, S], None, encrypt),
    ("decryptAES", &[S, S], None, |_, args| decrypt(args)),
    ("genPrivateKey", &[S], None, |context, args| {
        Ok(Value::str(keys::generate_pem(context, &args[0].text())?))
    }),
    ("genCA", &[S, I], None, |context, args| {
        certificates::authority(context, &args[0].text(), int(&args[1]), None)
    }),
    ("genCAWithKey", &[S, I, S], None, |context, args| {
        certificates::authority(
            context,
            &args[0].text(),
            int(&args[1]),
            Some(&args[2].text()),
        )
    }),
    ("genSelfSignedCert", &[S, L, L, I], None, |context, args| {
        certificates::self_signed(context, args, None)
    }),
    (
        "genSelfSignedCertWithKey",
        &[S, L, L, I, S],
        None,
        |context, args| certificates::self_signed(context, args, Some(&args[4].text())),
    ),
    ("genSignedCert", &[S, L, L, I, C], None, |context, args| {
        certificates::signed(context, args, None)
    }),
    (
        "genSignedCertWithKey",
        &[S, L, L, I, C, S],
        None,
        |context, args| certificates::signed(context, args, Some(&args[5].text())),
    ),
    ("buildCustomCert", &[S, S], None, |_, args| {
        certificates::custom(&args[0].text(), &args[1].text())
    }),
];

fn hex(algorithm: &'static digest::Algorithm, args: &[Value]) -> Value {
    let sum = digest::digest(algorithm, args[0].bytes());
    let digits: String = sum
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Value::str(digits)
}

fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    let (mut a, mut b) = (1_u32, 0_u32);
    for byte in bytes {
        a = (a + u32::from(*byte)) % MODULUS;
        b = (b + a) % MODULUS;
    }
    (b << 16) | a
}

fn bcrypt(context: &Context<'_>, password: &[u8]) -> std::result::Result<String, Error> {
    // Hashing takes as long as many steps.
    context.env.step(1_000_000)?;
    if password.len() > 72 {
        return Ok(
            "failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes"
                .to_owned(),
        );
    }
    let mut salt = [0; 16];
    context.env.random().fill_bytes(&mut salt);
    match ::bcrypt::hash_with_salt(password, BCRYPT_COST, salt) {
        Ok(parts) => Ok(parts.format_for_version(::bcrypt::Version::TwoA)),
        Err(why) => Ok(format!("failed to encrypt string with bcrypt: {why}")),
    }
}

fn aes_key(password: &Value) -> [u8; 32] {
    let mut key = [0; 32];
    for (slot, byte) in key.iter_mut().zip(password.bytes()) {
        *slot = *byte;
    }
    key
}

fn encrypt(context: &Context<'_>, args: &[Value]) -> Result {
    let plain = args[1].bytes();
    if plain.is_empty() {
        return Ok(Value::str(""));
    }
    let cipher = Aes256::new(&aes_key(&args[0]).into());
    let padding = BLOCK - plain.len() % BLOCK;
    let mut content = plain.to_vec();
    content.resize(plain.len() + padding, u8::try_from(padding).unwrap_or(0));
    let mut before = [0_u8; BLOCK];
    context.env.random().fill_bytes(&mut before);
    let mut out = before.to_vec();
    for chunk in content.chunks_exact(BLOCK) {
        for (slot, byte) in before.iter_mut().zip(chunk) {
            *slot ^= byte;
        }
        let mut block = before.into();
        cipher.encrypt_block(&mut block);
        before = block.into();
        out.extend_from_slice(&before);
    }
    Ok(Value::str(STANDARD.encode(out)))
}

fn decrypt(args: &[Value]) -> Result {
    let text = args[1].bytes();
    if text.is_empty() {
        return Ok(Value::str(""));
    }
    let Ok(bytes) = STANDARD.decode(text) else {
        return fail("illegal base64 data at input byte 0");
    };
    if bytes.len() < BLOCK {
        let capacity = text.len() / 4 * 3;
        return fail(format!(
            "runtime error: slice bounds out of range [:{BLOCK}] with capacity {capacity}"
        ));
    }
    if bytes.len() < 2 * BLOCK || bytes.len() % BLOCK != 0 {
        return fail("crypto/cipher: input not full blocks");
    }
    let cipher = Aes256::new(&aes_key(&args[0]).into());
    let mut out = Vec::with_capacity(bytes.len());
    for pair in bytes.windows(2 * BLOCK).step_by(BLOCK) {
        let (before, chunk) = pair.split_at(BLOCK);
        let mut block = [0_u8; BLOCK];
        block.copy_from_slice(chunk);
        let mut block = block.into();
        cipher.decrypt_block(&mut block);
        let plain: [u8; BLOCK] = block.into();
        out.extend(plain.iter().zip(before).map(|(a, b)| a ^ b));
    }
    let padding = usize::from(out.last().copied().unwrap_or(0));
    match out.len().checked_sub(padding) {
        Some(length) => Ok(Value::str(&out[..length])),
        None => fail("runtime error: slice bounds out of range"),
    }
}

/// The templates of passwords by their kind; a letter stands for a set of characters.
const PASSWORDS: [(&str, &[&str]); 6] = [
    ("maximum", &["anoxxxxxxxxxxxxxxxxx", "axxxxxxxxxxxxxxxxxno"]),
    (
        "long",
        &[
            "CvcvnoCvcvCvcv",
            "CvcvCvcvnoCvcv",
            "CvcvCvcvCvcvno",
            "CvccnoCvcvCvcv",
            "CvccCvcvnoCvcv",
            "CvccCvcvCvcvno",
            "CvcvnoCvccCvcv",
            "CvcvCvccnoCvcv",
            "CvcvCvccCvcvno",
            "CvcvnoCvcvCvcc",
            "CvcvCvcvnoCvcc",
            "CvcvCvcvCvccno",
            "CvccnoCvccCvcv",
            "CvccCvccnoCvcv",
            "CvccCvccCvcvno",
            "CvcvnoCvccCvcc",
            "CvcvCvccnoCvcc",
            "CvcvCvccCvccno",
            "CvccnoCvcvCvcc",
            "CvccCvcvnoCvcc",
            "CvccCvcvCvccno",
        ],
    ),
    ("medium", &["CvcnoCvc", "CvcCvcno"]),
    ("short", &["Cvcn"]),
    ("basic", &["aaanaaan", "aannaaan", "aaannaaa"]),
    ("pin", &["nnnn"]),
];

fn characters(letter: char) -> &'static [u8] {
    match letter {
        'V' => b"AEIOU",
        'C' => b"BCDFGHJKLMNPQRSTVWXYZ",
        'v' => b"aeiou",
        'c' => b"bcdfghjklmnpqrstvwxyz",
        'A' => b"AEIOUBCDFGHJKLMNPQRSTVWXYZ",
        'a' => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz",
        'n' => b"0123456789",
        'o' => b"@&%?,=[]_:-+*$#!'^~;()/.",
        _ => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
    }
}

/// A password that a name, a site and a master password always give again.
fn derive_password(context: &Context<'_>, args: &[Value]) -> Result {
    context.env.step(1_000_000)?;
    let kind = args[1].text();
    let Some((_, templates)) = PASSWORDS.iter().find(|(name, _)| *name == kind) else {
        return Ok(Value::str(format!("cannot find password template {kind}")));
    };
    let seeded = |text: &[u8]| {
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
        [
            &b"com.lyndir.masterpassword"[..],
            &length.to_be_bytes(),
            text,
        ]
        .concat()
    };
    let key = scrypt(args[2].bytes(), &seeded(args[3].bytes()));
    let counter = u32::try_from(int(&args[0])).unwrap_or(u32::MAX);
    let mut message = seeded(args[4].bytes());
    message.extend_from_slice(&counter.to_be_bytes());
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), &message);
    let (first, rest) = match tag.as_ref().split_first() {
        Some((first, rest)) => (usize::from(*first), rest),
        None => return fail("failed to derive password"),
    };
    let template = templates[first % templates.len()];
    let password: Vec<u8> = (template.chars().zip(rest))
        .map(|(letter, byte)| {
            let set = characters(letter);
            set[usize::from(*byte) % set.len()]
        })
        .collect();
    Ok(Value::str(password))
}

/// scrypt with N 32768, r 8 and p 2, which makes 64 bytes.
fn scrypt(password: &[u8], salt: &[u8]) -> [u8; 64] {
    const N: usize = 32_768;
    const LANES: usize = 2;
    const WORDS: usize = 256;
    let once = std::num::NonZeroU32::MIN;
    let mut blocks = vec![0_u8; LANES * WORDS * 4];
    pbkdf2::derive(
        pbkdf2::PBKDF2_HMAC_SHA256,
        once,
        salt,
        password,
        &mut blocks,
    );
    for lane in blocks.chunks_exact_mut(WORDS * 4) {
        let mut words: Vec<u32> = lane
            .chunks_exact(4)
            .map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
            .collect();
        let mut memory: Vec<Vec<u32>> = Vec::with_capacity(N);
        for _ in 0..N {
            memory.push(words.clone());
            words = mix(&words);
        }
        for _ in 0..N {
            let at = words[WORDS - 16] as usize % N;
            for (word, other) in words.iter_mut().zip(&memory[at]) {
                *word ^= other;
            }
            words = mix(&words);
        }
        for (bytes, word) in lane.chunks_exact_mut(4).zip(&words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
    }
    let mut out = [0; 64];
    pbkdf2::derive(
        pbkdf2::PBKDF2_HMAC_SHA256,
        once,
        &blocks,
        password,
        &mut out,
    );
    out
}

/// scrypt's mixing of blocks of 16 words.
fn mix(words: &[u32]) -> Vec<u32> {
    let count = words.len() / 16;
    let mut x = [0_u32; 16];
    x.copy_from_slice(&words[words.len() - 16..]);
    let mut out = vec![0; words.len()];
    for (index, block) in words.chunks_exact(16).enumerate() {
        for (word, other) in x.iter_mut().zip(block) {
            *word ^= other;
        }
        salsa(&mut x);
        // Even blocks come first, odd ones behind them.
        let at = (index / 2 + (index % 2) * (count / 2)) * 16;
        out[at..at + 16].copy_from_slice(&x);
    }
    out
}

/// Salsa20 with eight rounds.
fn salsa(block: &mut [u32; 16]) {
    const QUARTERS: [[usize; 4]; 8] = [
        [0, 4, 8, 12],
        [5, 9, 13, 1],
        [10, 14, 2, 6],
        [15, 3, 7, 11],
        [0, 1, 2, 3],
        [5, 6, 7, 4],
        [10, 11, 8, 9],
        [15, 12, 13, 14],
    ];
    let mut x = *block;
    for _ in 0..4 {
        for [a, b, c, d] in QUARTERS {
            x[b] ^= x[a].wrapping_add(x[d]).rotate_left(7);
            x[c] ^= x[b].wrapping_add(x[a]).rotate_left(9);
            x[d] ^= x[c].wrapping_add(x[b]).rotate_left(13);
            x[a] ^= x[d].wrapping_add(x[c]).rotate_left(18);
        }
    }
    for (word, mixed) in block.iter_mut().zip(x) {
        *word = word.wrapping_add(mixed);
    }
}
