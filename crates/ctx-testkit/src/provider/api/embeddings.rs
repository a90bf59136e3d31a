//! Embeddings without a model: texts that share words are close.

use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};

use super::super::prompt::tokens_of;

/// Returns the texts to embed.
pub(in super::super) fn inputs(body: &Value) -> Vec<String> {
    match body.get("input") {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(all)) => {
            all.iter().map(|text| text.as_str().unwrap_or_default().to_owned()).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns OpenAI's answer. Vectors are base64 if requested.
pub(in super::super) fn openai(body: &Value, vectors: &[Vec<f32>], chars: u64) -> Value {
    let base64 = body.get("encoding_format").and_then(Value::as_str) == Some("base64");
    let data = vectors.iter().enumerate().map(|(index, vector)| {
        let embedding = if base64 { json!(to_base64(vector)) } else { json!(vector) };
        json!({ "object": "embedding", "index": index, "embedding": embedding })
    });
    let tokens = tokens_of(chars);
    json!({
        "object": "list",
        "data": data.collect::<Vec<_>>(),
        "model": body.get("model"),
        "usage": { "prompt_tokens": tokens, "total_tokens": tokens },
    })
}

/// Returns Ollama's answer.
pub(in super::super) fn ollama(body: &Value, vectors: &[Vec<f32>], chars: u64) -> Value {
    json!({
        "model": body.get("model"),
        "embeddings": vectors,
        "total_duration": 1_000_000,
        "prompt_eval_count": tokens_of(chars),
    })
}

/// Hashes words and pairs of adjacent letters of a text into `dimensions` buckets; the vector has
/// length 1. The same text gives the same vector on every machine.
pub fn embedding(text: &str, dimensions: usize) -> Vec<f32> {
    let mut vector = vec![0f32; dimensions.max(1)];
    let mut add = |part: &str, weight: f32| {
        let hash = fnv1a(part.as_bytes());
        let at = (hash % vector.len() as u64) as usize;
        if let Some(place) = vector.get_mut(at) {
            *place += if hash >> 63 == 0 { weight } else { -weight };
        }
    };
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    for word in words {
        add(word, 1.0);
        // Scripts without spaces have few words; letter pairs replace them.
        let letters: Vec<char> = word.chars().collect();
        for pair in letters.windows(2) {
            add(&pair.iter().collect::<String>(), 0.3);
        }
    }
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    match length > 0.0 {
        true => vector.iter_mut().for_each(|x| *x /= length),
        false => vector.iter_mut().take(1).for_each(|x| *x = 1.0),
    }
    vector
}

fn fnv1a(bytes: &[u8]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325u64;
    bytes.iter().fold(start, |hash, b| (hash ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

/// Encodes little-endian floats in base64.
fn to_base64(vector: &[f32]) -> String {
    let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
    BASE64_STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closeness(a: &str, b: &str) -> f32 {
        let (a, b) = (embedding(a, 128), embedding(b, 128));
        a.iter().zip(&b).map(|(x, y)| x * y).sum()
    }

    #[test]
    fn texts_that_share_words_are_closer_than_texts_that_do_not() {
        let near = closeness("the build fails on windows", "on windows the build is broken");
        let far = closeness("the build fails on windows", "lunch is at noon");
        assert!(near > far + 0.3, "{near} {far}");
        let near = closeness("不要重启数据库服务器", "数据库服务器不能重启");
        let far = closeness("不要重启数据库服务器", "今天天气很好");
        assert!(near > far + 0.3, "{near} {far}");
        assert_eq!(embedding("", 4), [1.0, 0.0, 0.0, 0.0]);
    }
}
