use proptest::prelude::*;

use super::*;

/// A client's side: opens streams with compressed headers.
struct Opening(Compress);

impl Opening {
    fn new() -> Self {
        let mut deflate = Compress::new(Compression::default(), true);
        deflate.set_dictionary(&dictionary()).expect("a dictionary");
        Self(deflate)
    }

    fn open(&mut self, stream: u32, headers: &[(&str, &str)], flags: u8) -> Bytes {
        let mut plain = BytesMut::new();
        plain.put_u32(u32::try_from(headers.len()).expect("few headers"));
        for (name, value) in headers {
            for word in [name, value] {
                plain.put_u32(u32::try_from(word.len()).expect("a short word"));
                plain.put_slice(word.as_bytes());
            }
        }
        let mut compressed = Vec::with_capacity(1024);
        self.0
            .compress_vec(&plain, &mut compressed, FlushCompress::Sync)
            .expect("compressed headers");
        let mut content = BytesMut::new();
        content.put_u32(stream);
        content.put_u32(0);
        content.put_u16(0);
        content.put_slice(&compressed);
        control(SYN_STREAM, flags, &content)
    }
}

fn headers(pairs: &[(&str, &str)]) -> Headers {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn the_dictionary_is_the_one_of_the_draft() {
    // Its checksum is what a compressed stream names it by.
    let words = dictionary();
    assert_eq!(words.len(), 1423);
    let (mut a, mut b) = (1_u32, 0_u32);
    for byte in words {
        a = (a + u32::from(byte)) % 65521;
        b = (b + a) % 65521;
    }
    assert_eq!(b << 16 | a, 0xe3c6_a7c2);
}

#[test]
fn headers_of_one_direction_are_one_compressed_stream() {
    let mut client = Opening::new();
    let mut decoder = Decoder::new();
    let pairs = [
        ("streamtype", "error"),
        ("port", "8080"),
        ("requestid", "0"),
    ];
    decoder.put(&client.open(1, &pairs, FIN));
    decoder.put(&client.open(3, &[("streamtype", "data")], 0));
    assert_eq!(
        decoder.next(),
        Ok(Some(Frame::Open {
            stream: 1,
            headers: headers(&pairs),
            last: true,
        }))
    );
    assert_eq!(
        decoder.next(),
        Ok(Some(Frame::Open {
            stream: 3,
            headers: headers(&[("streamtype", "data")]),
            last: false,
        }))
    );
    assert_eq!(decoder.next(), Ok(None));
}

#[test]
fn a_reply_can_be_read_with_the_same_dictionary() {
    let mut encoder = Encoder::new();
    let mut inflate = Decoder::new();
    for stream in [1, 3] {
        let reply = encoder.reply(stream);
        assert_eq!(&reply[..4], [0x80, 3, 0, 2]);
        assert_eq!(reply[8..12], stream.to_be_bytes());
        assert_eq!(inflate.headers(&reply[12..]), Ok(Headers::new()));
    }
}

#[test]
fn nonsense_is_refused() {
    let mut decoder = Decoder::new();
    decoder.put(&[0x80, 2, 0, 1, 0, 0, 0, 0]);
    assert_eq!(decoder.next(), Err(SpdyError::Version(2)));
    let mut decoder = Decoder::new();
    decoder.put(&control(SYN_STREAM, 0, &[0, 0, 0, 1]));
    assert_eq!(decoder.next(), Err(SpdyError::Short));
    let mut decoder = Decoder::new();
    decoder.put(&control(SYN_STREAM, 0, &[7; 40]));
    assert_eq!(decoder.next(), Err(SpdyError::Headers));
}

proptest! {
    #[test]
    fn data_comes_back_however_it_is_cut(
        pieces in prop::collection::vec((0_u32..9, prop::collection::vec(any::<u8>(), 0..40), any::<bool>()), 0..20),
        cut in 1_usize..30,
    ) {
        let mut wire = Vec::new();
        for (stream, bytes, last) in &pieces {
            wire.extend_from_slice(&Encoder::data(*stream, bytes, *last));
        }
        let mut decoder = Decoder::new();
        let mut seen = Vec::new();
        for part in wire.chunks(cut) {
            decoder.put(part);
            while let Some(frame) = decoder.next().expect("frames") {
                match frame {
                    Frame::Data { stream, bytes, last } => seen.push((stream, bytes.to_vec(), last)),
                    other => panic!("not data: {other:?}"),
                }
            }
        }
        prop_assert_eq!(seen, pieces);
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut decoder = Decoder::new();
        decoder.put(&bytes);
        while let Ok(Some(_)) = decoder.next() {}
    }
}
