//! Embedding models.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use ctx_core::{Embedder, Error, ErrorKind, Result};
use reqwest::Method;
use serde_json::{Value, json};

use crate::failure::{ErrorContext, LONGEST_BODY};
use crate::{Client, Endpoint, Request, provider_error};

/// Maximum texts and text bytes per request. OpenAI accepts 2,048 texts and 300,000 tokens; a local
/// server is slow long before that.
const BATCH_TEXTS: usize = 64;
const BATCH_BYTES: usize = 256 * 1024;

/// Maximum bytes of one vector element in JSON, with a margin.
const BYTES_PER_NUMBER: usize = 40;

/// The hint for a server whose answers do not match the API.
const NOT_COMPATIBLE: &str =
    "check that the base URL is that of an embedding API and the model an embedding model";

/// The embedding APIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EmbedApi {
    /// OpenAI's `embeddings`.
    OpenAi,
    /// Ollama's own `/api/embed`, which reports a text that is too long instead of truncating it.
    Ollama,
}

/// An embedding model at an endpoint.
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
    /// Creates the embedder for `model` of `provider`, with vectors of `dimensions` elements.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if `dimensions` is zero.
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
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "vectors must have at least one dimension",
            )
            .with("model", provider_model)
            .hint("set the number of dimensions that the model's vectors have"));
        }
        Ok(Self {
            // Vectors of one model that were shortened to different lengths cannot be compared.
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

    /// Requests vectors of exactly this length, which only some models support.
    #[must_use]
    pub(crate) fn with_dimensions(mut self) -> Self {
        self.ask_dimensions = true;
        self
    }

    async fn embed_batch(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let (headers, secrets) = self.endpoint.headers()?;
        let context = ErrorContext {
            name: &self.provider_model,
            key: self.endpoint.key(),
            secrets: &secrets,
        };
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
            let error_text = provider_error::read(&String::from_utf8_lossy(&text));
            return Err(context.failure(response.status.as_u16(), &response.headers, &error_text));
        }
        let most = texts.len().saturating_mul(self.dimensions).saturating_mul(BYTES_PER_NUMBER);
        let limit = most.saturating_add(LONGEST_BODY);
        let bytes = response.body.read_up_to(limit).await.map_err(named)?;
        let answer: Value = serde_json::from_slice(&bytes).map_err(|e| {
            Error::new(ErrorKind::Upstream, "invalid answer of the embedding API")
                .with("model", &self.provider_model)
                .with("bytes", bytes.len())
                .retryable()
                .hint("try again; if it persists, check the base URL and the dimensions")
                .source(e)
        })?;
        if crate::chat::answer_reader::is_error(&answer) {
            let error_text = provider_error::read_value(&answer);
            return Err(context.failure(error_text.status(), &Default::default(), &error_text));
        }
        self.vectors(&answer, texts.len())
    }

    /// Returns the vectors in the order of the texts.
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
            .ok_or_else(|| wrong("the answer has no vectors").hint("check the base URL"))?;
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
                    return Err(
                        wrong("the answer has a surplus or duplicate vector").hint(NOT_COMPATIBLE)
                    );
                }
            }
        }
        let vectors: Option<Vec<_>> = vectors.into_iter().collect();
        vectors.ok_or_else(|| {
            wrong("the answer lacks vectors for some texts")
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
            return Err(wrong("a vector has an unexpected number of dimensions")
                .with("dimensions", all.len())
                .with("expected", self.dimensions)
                .hint(format!("set the number of dimensions of this model to {}", all.len())));
        }
        all.iter()
            .map(|number| number.as_f64().map(|n| n as f32).filter(|n| n.is_finite()))
            .collect::<Option<Vec<f32>>>()
            .ok_or_else(|| {
                wrong("a vector contains a value that is not a number").hint(NOT_COMPATIBLE)
            })
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
            // Providers refuse a whole batch if one text is empty.
            let batch: Vec<&str> =
                batch.iter().map(|t| if t.is_empty() { " " } else { t.as_str() }).collect();
            vectors.extend(self.embed_batch(&batch).await?);
        }
        Ok(vectors)
    }
}

/// Splits texts into batches of one request each. An oversized text is a separate batch.
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
