//! The database of a simulated member, as the file that etcd would send: bbolt, then its SHA-256.
//!
//! Written by hand, as small as bbolt allows, so that the operator's reader of real files reads
//! these too.

use etcd_operator::snapshot::Check;

const PAGE: usize = 4096;
const LEAF: u16 = 0x02;
const META: u16 = 0x04;
const FREELIST: u16 = 0x10;

/// The snapshot of a member to which these keys and values were written, in order.
pub(crate) fn snapshot_of(puts: &[(String, String)], version: &str) -> Vec<u8> {
    let keys: Vec<(Vec<u8>, Vec<u8>)> = puts
        .iter()
        .zip(2_i64..)
        .map(|((key, value), revision)| {
            let mut name = revision.to_be_bytes().to_vec();
            name.push(b'_');
            name.extend_from_slice(&0_i64.to_be_bytes());
            (name, format!("{key}\0{value}").into_bytes())
        })
        .collect();
    let keys = leaf(&keys, 0);
    let cluster = vec![(b"clusterVersion".to_vec(), version.as_bytes().to_vec())];
    let first = 4 + keys.len() / PAGE;
    let bucket = |root: usize| {
        let mut value = (root as u64).to_le_bytes().to_vec();
        value.extend_from_slice(&0_u64.to_le_bytes());
        value
    };
    let root = vec![
        (b"cluster".to_vec(), bucket(first)),
        (b"key".to_vec(), bucket(4)),
        (b"meta".to_vec(), bucket(first + 1)),
    ];
    let mut file = [meta(0), meta(1), page(FREELIST, 0, &[]), leaf(&root, 1)].concat();
    file.extend(keys);
    file.extend(leaf(&cluster, 0));
    file.extend(leaf(&[], 0));
    let hash = ring::digest::digest(&ring::digest::SHA256, &file);
    file.extend_from_slice(hash.as_ref());
    file
}

/// The keys and values of a snapshot that [`snapshot_of`] made; none if it is not whole.
pub(crate) fn puts_of(snapshot: &[u8]) -> Option<Vec<(String, String)>> {
    let mut check = Check::default();
    check.update(snapshot);
    check.finish().ok()?;
    let page = &snapshot[4 * PAGE..];
    let count = usize::from(u16::from_le_bytes([page[10], page[11]]));
    let number = |at: usize| u32::from_le_bytes(page[at..at + 4].try_into().unwrap()) as usize;
    let element = |nth: usize| {
        let at = 16 + nth * 16;
        let begin = at + number(at + 4) + number(at + 8);
        let text = String::from_utf8(page[begin..begin + number(at + 12)].to_vec());
        let text = text.unwrap();
        let (key, value) = text.split_once('\0').unwrap();
        (key.to_owned(), value.to_owned())
    };
    Some((0..count).map(element).collect())
}

fn page(kind: u16, count: usize, body: &[u8]) -> Vec<u8> {
    let pages = (16 + body.len()).div_ceil(PAGE);
    let mut page = Vec::with_capacity(pages * PAGE);
    page.extend_from_slice(&0_u64.to_le_bytes());
    page.extend_from_slice(&kind.to_le_bytes());
    page.extend_from_slice(&u16::try_from(count).unwrap().to_le_bytes());
    page.extend_from_slice(&u32::try_from(pages - 1).unwrap().to_le_bytes());
    page.extend_from_slice(body);
    page.resize(pages * PAGE, 0);
    page
}

fn leaf(elements: &[(Vec<u8>, Vec<u8>)], flags: u32) -> Vec<u8> {
    let (mut heads, mut data) = (Vec::new(), Vec::new());
    for (nth, (key, value)) in elements.iter().enumerate() {
        let position = (elements.len() - nth) * 16 + data.len();
        for number in [flags as usize, position, key.len(), value.len()] {
            heads.extend_from_slice(&u32::try_from(number).unwrap().to_le_bytes());
        }
        data.extend_from_slice(key);
        data.extend_from_slice(value);
    }
    heads.extend(data);
    page(LEAF, elements.len(), &heads)
}

fn meta(transaction: u64) -> Vec<u8> {
    let mut meta = Vec::new();
    for number in [0xED0C_DAED_u32, 2, 4096, 0] {
        meta.extend_from_slice(&number.to_le_bytes());
    }
    // The root bucket's page, its sequence, the list of free pages, the end, the transaction.
    for number in [3, 0, 2, 0, transaction] {
        meta.extend_from_slice(&u64::to_le_bytes(number));
    }
    let sum = meta.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    meta.extend_from_slice(&sum.to_le_bytes());
    page(META, 0, &meta)
}
