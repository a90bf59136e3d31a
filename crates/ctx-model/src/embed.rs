//! Models that turn texts into vectors.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use ctx_core::{Embedder, Error, ErrorKind, Result};
use reqwest::Method;
use serde_json::{Value, json};

use crate::failure::{Asked, LONGEST_BODY};
use crate::provider_error;
use crate::{Client, Endpoint, Request};

/// How many texts go into one request, and how many bytes of text. OpenAI takes 2,048 texts and
/// 300,000 tokens; a local server is slow long before that.
const BATCH_TEXTS: usize = 64;
const BATCH_BYTES: usize = 256 * 1024;

/// How many bytes a number of a vector takes in JSON, with room.
const BYTES_PER_NUMBER: usize = 40;

/// What to do about a server whose answers are not those of the API it should speak.
const NOT_COMPATIBLE: &str =
    "check that the base URL is that of an embedding API and the model one for vectors";

/// How the vectors are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EmbedApi {
    /// `embeddings` beside OpenAI's chat.
    OpenAi,
    /// Ollama's own `/api/embed`, which says when a text is too long instead of shortening it.
    Ollama,
}

/// A model that makes vectors, at an endpoint.
#[derive(Debug)]
pub struct HttpEmbedder {
    name: String,
    provider_model: String,
    model: String,
    dimensions: usize,
    ask_dimensions: bool,
    api: EmbedApi,
    endpoint: Endpoint,
    client: Arc<Client>,
}

impl HttpEmbedder {
    /// The model `model` of `provider`, whose vectors have `dimensions` numbers each.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if vectors without numbers are asked for.
    pub fn new(
        provider: &str,
        model: &str,
        dimensions: usize,
        api: EmbedApi,
        endpoint: Endpoint,
        client: Arc<Client>,
    ) -> Result<Self> {
        let provider_model = format!("{provider}/{model}");
        if dimensions == 0 {
            return Err(Error::new(ErrorKind::InvalidInput, "vectors need at least one dimension")
                .with("model", provider_model)
                .hint("give the number of dimensions the model's vectors have"));
        }
        Ok(Self {
            // Vectors of one model that were cut to different lengths do not compare.
            name: format!("{provider_model}#{dimensions}"),
            provider_model,
            model: model.to_owned(),
            dimensions,
            ask_dimensions: false,
            api,
            endpoint,
            client,
        })
    }

    /// Asks the model for vectors of just that length, which only some can.
    #[must_use]
    pub fn asking_for_dimensions(mut self) -> Self {
        self.ask_dimensions = true;
        self
    }

    async fn embed_batch(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let (headers, secrets) = self.endpoint.headers()?;
        let asked =
            Asked { name: &self.provider_model, key: self.endpoint.key(), secrets: &secrets };
        let mut body = json!({ "model": self.model, "input": texts });
        if self.ask_dimensions {
            body["dimensions"] = self.dimensions.into();
        }
        let url = match self.api {
            EmbedApi::OpenAi => {
                body["encoding_format"] = "float".into();
                self.endpoint.url("embeddings")
            }
            EmbedApi::Ollama => {
                body["truncate"] = false.into();
                self.endpoint.at("/api/embed")
            }
        };
        let body = Bytes::from(body.to_string());
        let request = Request { method: Method::POST, url, headers, body };
        let named = |e: Error| e.with("model", &self.provider_model);
        let mut response = self.client.send(request).await.map_err(named)?;
        if !response.status.is_success() {
            let text = response.body.read_up_to(LONGEST_BODY).await.unwrap_or_default();
            let said = provider_error::read(&String::from_utf8_lossy(&text));
            return Err(asked.failure(response.status.as_u16(), &response.headers, &said));
        }
        let most = texts.len().saturating_mul(self.dimensions).saturating_mul(BYTES_PER_NUMBER);
        let limit = most.saturating_add(LONGEST_BODY);
        let bytes = response.body.read_up_to(limit).await.map_err(named)?;
        let answer: Value = serde_json::from_slice(&bytes).map_err(|e| {
            Error::new(ErrorKind::Upstream, "an answer with vectors cannot be read")
                .with("model", &self.provider_model)
                .with("bytes", bytes.len())
                .retryable()
                .hint("try again; if it stays so, check the base URL and the dimensions")
                .source(e)
        })?;
        if crate::chat::reading::is_error(&answer) {
            let said = provider_error::read_value(&answer);
            return Err(asked.failure(said.status(), &Default::default(), &said));
        }
        self.vectors(&answer, texts.len())
    }

    /// The vectors in the order of the texts.
    fn vectors(&self, answer: &Value, count: usize) -> Result<Vec<Vec<f32>>> {
        let wrong = |what: &'static str| {
            Error::new(ErrorKind::Corrupt, what)
                .with("model", &self.provider_model)
                .with("texts", count)
        };
        let items = match self.api {
            EmbedApi::OpenAi => &answer["data"],
            EmbedApi::Ollama => &answer["embeddings"],
        };
        let items = items
            .as_array()
            .ok_or_else(|| wrong("an answer holds no vectors").hint("check the base URL"))?;
        let mut vectors: Vec<Option<Vec<f32>>> = vec![None; count];
        for (at, item) in items.iter().enumerate() {
            let (index, numbers) = match self.api {
                EmbedApi::OpenAi => {
                    let index = item["index"].as_u64().map_or(at, |i| i as usize);
                    (index, &item["embedding"])
                }
                EmbedApi::Ollama => (at, item),
            };
            match vectors.get_mut(index) {
                Some(place @ None) => {
                    *place = Some(self.vector(numbers).map_err(|e| e.with("text", index))?);
                }
                _ => {
                    return Err(wrong("an answer holds a vector for no text, or two for one")
                        .hint(NOT_COMPATIBLE));
                }
            }
        }
        let vectors: Option<Vec<_>> = vectors.into_iter().collect();
        vectors.ok_or_else(|| {
            wrong("an answer lacks the vectors of some texts")
                .with("vectors", items.len())
                .hint(NOT_COMPATIBLE)
        })
    }

    fn vector(&self, numbers: &Value) -> Result<Vec<f32>> {
        let all = numbers.as_array().map_or(&[][..], Vec::as_slice);
        let wrong = |what: &'static str| {
            Error::new(ErrorKind::Corrupt, what).with("model", &self.provider_model)
        };
        if all.len() != self.dimensions {
            return Err(wrong("a vector has another length than the model's")
                .with("dimensions", all.len())
                .with("expected", self.dimensions)
                .hint(format!("set the number of dimensions of this model to {}", all.len())));
        }
        all.iter()
            .map(|number| number.as_f64().map(|n| n as f32).filter(|n| n.is_finite()))
            .collect::<Option<Vec<f32>>>()
            .ok_or_else(|| wrong("a vector holds what is no number").hint(NOT_COMPATIBLE))
    }
}

#[async_trait]
impl Embedder for HttpEmbedder {
    fn name(&self) -> &str {
        &self.name
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in batches(texts) {
            // Providers refuse an empty text, and with it the whole batch.
            let batch: Vec<&str> =
                batch.iter().map(|t| if t.is_empty() { " " } else { t.as_str() }).collect();
            vectors.extend(self.embed_batch(&batch).await?);
        }
        Ok(vectors)
    }
}

/// Stretches of texts that fit one request each; a text that is too long alone goes alone.
fn batches(texts: &[String]) -> impl Iterator<Item = &[String]> {
    let mut rest = texts;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fitting = rest
            .iter()
            .take(BATCH_TEXTS)
            .take_while(|text| {
                bytes += text.len();
                bytes <= BATCH_BYTES
            })
            .count();
        let (batch, more) = rest.split_at(fitting.max(1).min(rest.len()));
        rest = more;
        (!batch.is_empty()).then_some(batch)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_hold_all_texts_in_order_and_none_is_too_large() {
        let sizes = [1, 2, BATCH_BYTES, 5, BATCH_BYTES * 3, 7, 8];
        let mut texts: Vec<String> = sizes.iter().map(|n| "x".repeat(*n)).collect();
        texts.extend((0..200).map(|n| n.to_string()));
        let cut: Vec<_> = batches(&texts).collect();
        assert_eq!(cut.concat(), texts);
        for batch in &cut {
            let bytes: usize = batch.iter().map(String::len).sum();
            assert!(batch.len() <= BATCH_TEXTS && (bytes <= BATCH_BYTES || batch.len() == 1));
        }
        assert_eq!(batches(&[]).count(), 0);
    }
}
