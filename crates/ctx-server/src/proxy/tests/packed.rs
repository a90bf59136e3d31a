//! Encoded bodies, and oversized bodies, over a socket.

use ctx_testkit::provider::{FakeProvider, Step};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

const PLAIN: &[u8] = br#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;

fn provider() -> FakeProvider {
    FakeProvider::builder().respond(|_| Step::text("hello")).start().unwrap()
}

/// Returns [`PLAIN`] as one stored (uncompressed) block of deflate.
fn stored() -> Vec<u8> {
    let length = PLAIN.len() as u16;
    [&[1][..], &length.to_le_bytes(), &(!length).to_le_bytes(), PLAIN].concat()
}

/// Returns [`PLAIN`] in each supported encoding, all uncompressed.
fn encoded() -> Vec<(&'static str, Vec<u8>)> {
    let length = PLAIN.len() as u32;
    let crc = !PLAIN.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 * (crc & 1)))
    });
    let (a, b) = PLAIN.iter().fold((1, 0), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65_521;
        (a, (b + a) % 65_521)
    });
    let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let gzip = [&head[..], &stored(), &crc.to_le_bytes(), &length.to_le_bytes()].concat();
    let zlib = [&[0x78, 1][..], &stored(), &(b << 16 | a).to_be_bytes()].concat();
    // One segment, its size in one byte; one raw block, which is the last.
    let block = (length << 3 | 1).to_le_bytes();
    let zstd = [&[0x28, 0xb5, 0x2f, 0xfd, 0x20, length as u8][..], &block[..3], PLAIN].concat();
    vec![("gzip", gzip.clone()), ("X-GZIP", gzip), ("deflate", zlib), ("zstd", zstd)]
}

#[tokio::test]
async fn every_known_encoding_is_decoded_in_every_api() {
    let rig = Rig::new(provider(), Set::default()).await;
    for (how, body) in encoded() {
        let headers = [("content-encoding", how), ("authorization", "Bearer k")];
        let got = rig.send(Method::POST, "/v1/chat/completions", &headers, body.clone()).await;
        assert_eq!(got.status, 200, "{how} {got:?}");
        assert_eq!(rig.last().body, PLAIN, "{how}");
        assert_eq!(rig.last().header("content-encoding"), None);
        // A truncated body.
        let half = body[..body.len() / 2].to_vec();
        for path in ["/v1/chat/completions", "/v1/messages", "/v1/responses"] {
            let got = rig.send(Method::POST, path, &headers, half.clone()).await;
            assert_eq!(got.status, 400, "{how} {path} {got:?}");
            assert!(got.json()["error"]["message"].is_string());
        }
        // Requests other than conversations pass unchanged.
        rig.send(Method::POST, "/v1/embeddings", &headers, body.clone()).await;
        assert_eq!((&*rig.last().body, rig.last().header("content-encoding")), (&*body, Some(how)));
    }
    let seen = rig.provider.count();
    for how in ["br", "compress", "gzip, zstd", "aws-chunked"] {
        let headers = [("content-encoding", how)];
        let got = rig.send(Method::POST, "/v1/messages", &headers, PLAIN).await;
        assert_eq!((got.status.as_u16(), &got.json()["type"]), (415, &json!("error")), "{how}");
        assert!(got.json()["error"]["message"].as_str().is_some_and(|text| text.contains("zstd")));
    }
    let got =
        rig.send(Method::POST, "/v1/chat/completions", &[("content-encoding", "identity")], PLAIN);
    assert_eq!((got.await.status.as_u16(), rig.provider.count()), (200, seen + 1));
}

#[tokio::test]
async fn a_body_that_is_too_large_when_decoded_is_refused() {
    let config = "{ server: { summaries: 'extractive', maxBodyBytes: 10000 } }";
    let rig = Rig::new(provider(), Set { config, ..Set::default() }).await;
    // A zstd block that repeats one byte a hundred thousand times.
    let block = (100_000_u32 << 3 | 1 << 1 | 1).to_le_bytes();
    let frame = [&[0x28, 0xb5, 0x2f, 0xfd, 0, 0x40][..], &block[..3], b" "].concat();
    let headers = [("content-encoding", "zstd")];
    let got = rig.send(Method::POST, "/v1/responses", &headers, frame).await;
    assert_eq!(got.status, 413, "{got:?}");
    assert!(
        got.json()["error"]["message"].as_str().is_some_and(|text| text.contains("--max-body"))
    );
}

#[tokio::test]
async fn a_client_that_sends_far_too_much_receives_the_refusal() {
    const PIECE: usize = 1 << 20;
    const PIECES: usize = 200;
    let rig = Rig::new(provider(), Set::default()).await;
    let address = rig.url.strip_prefix("http://").unwrap();
    let piece = vec![b' '; PIECE];
    for (path, length) in [
        ("/v1/messages", "transfer-encoding: chunked".to_owned()),
        ("/v1/chat/completions", format!("content-length: {}", PIECES * PIECE)),
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let is_chunked = length.contains("chunked");
        let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n{length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        for _ in 0..PIECES {
            if is_chunked {
                stream.write_all(format!("{PIECE:x}\r\n").as_bytes()).await.unwrap();
            }
            // If the server stopped reading, writing would not complete.
            stream.write_all(&piece).await.unwrap();
            if is_chunked {
                stream.write_all(b"\r\n").await.unwrap();
            }
        }
        if is_chunked {
            stream.write_all(b"0\r\n\r\n").await.unwrap();
        }
        let mut answer = vec![0; 4_096];
        let read = stream.read(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
        assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
        assert!(answer.contains("\"error\"") && answer.contains("--max-body"), "{answer}");
    }
    assert_eq!(rig.provider.count(), 0);
    let space = &rig.proxy.space;
    let left = [&space.first, &space.rest].map(|half| half.available_permits());
    assert_eq!(left, [body::BodyMemory::KIB; 2], "all memory is released");
}
