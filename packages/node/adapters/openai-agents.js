// OpenAI Agents: a filter of the model's input.
//
//     new Runner({ callModelInputFilter: contextFilter({ window: 32_000 }) })

import { fitter } from "../src/adapter.js";

const OUTPUTS = {
  function_call_result: "function_call_output",
  computer_call_result: "computer_call_output",
};

/** Sends the items that fit. `session` is a function of the filter's arguments, such as its `context`. */
export function contextFilter(options) {
  const fit = fitter(options, "responses");
  const filter = async (call) => {
    const { input, instructions } = call.modelData;
    const tools = call.agent.tools?.map(({ type, name, description, parameters }) => {
      return { type, name, description, parameters };
    });
    const fitted = await fit(call, input.map(responses), { system: instructions, tools });
    if (!fitted) return call.modelData;
    const texts = [instructions, fitted.systemAddition].filter(Boolean);
    return {
      input: fitted.restored(input, (item) => restored(item, input)),
      instructions: texts.length > 0 ? texts.join("\n\n") : undefined,
    };
  };
  // The items need not be copied for this filter.
  filter.preserveInputIdentity = true;
  return filter;
}

/** Returns an item in the format of the Responses API. */
function responses({ type = "message", callId, output, content, providerData, ...rest }) {
  const item = { ...rest, type: OUTPUTS[type] ?? type };
  if (callId !== undefined) item.call_id = callId;
  if (type === "reasoning") {
    item.summary = content.map(({ text }) => ({ type: "summary_text", text }));
    item.encrypted_content = providerData?.encrypted_content ?? providerData?.encryptedContent;
  } else if (content !== undefined) {
    item.content = Array.isArray(content) ? content.map(part) : content;
  }
  if (output !== undefined) item.output = type === "function_call_result" ? outputOf(output) : output;
  return item;
}

function outputOf(output) {
  if (typeof output === "string") return output;
  return output.type === "text" ? output.text : [output].flat().map(part);
}

function part(given) {
  const { image } = given;
  if (!image) return given;
  const url =
    typeof image === "string" ? image : (image.url ?? `data:${image.mediaType};base64,${image.data}`);
  return { ...given, type: "input_image", image_url: url };
}

/** Returns an item of ctx as one of this framework: a call or a result keeps its other fields. */
function restored({ call_id: id, ...item }, input) {
  const own = id && input.find(({ type, callId }) => callId === id && (OUTPUTS[type] ?? type) === item.type);
  if (own && item.output !== undefined) return { ...own, output: item.output };
  if (own) return { ...own, ...item };
  if (id) return { ...item, callId: id };
  return item.role === "assistant" ? { status: "completed", ...item } : item;
}
