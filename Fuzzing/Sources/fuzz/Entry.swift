// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Parses one input in the target's format. A normal return is a pass for any input; a trap is a finding.
typealias FuzzTarget = @Sendable ([UInt8]) -> Void

/// Targets by name; each has a directory of seeds in `Fuzzing/Corpus`.
private let targets: [String: FuzzTarget] = [
  "badge-replies": readBadgeReply,
  "callback-responses": readCallbackResponse,
  "configurations": readConfiguration,
  "control": readControlMessage,
  "control-calls": answerCall,
  "device-answers": readServerAnswer,
  "device-bodies": readDeviceBody,
  "event-stream": readEventStream,
  "hid": readHID,
  "json": readJSONText,
  "key-cards": readKeyCard,
  "listener-requests": readListenerRequest,
  "mqtt": readMQTTPayload,
  "openpgp": readOpenPGP,
  "plug-in-questions": readPluginQuestion,
  "plug-ins": readPlugin,
  "portal": readPortalRequest,
  "proofs": readProof,
  "push-challenges": readPushChallenges,
  "push-envelopes": readPushEnvelope,
  "relay": readRelay,
  "request-framing": readRequests,
  "request-heads": readRequestHead,
  "response-heads": readResponseHead,
  "script-results": readScriptResult,
  "stored": readStored,
  "uris": readURI,
]

/// The target that `FUZZ_TARGET` names.
private let target: FuzzTarget = {
  let name = getenv("FUZZ_TARGET").map { String(cString: $0) } ?? ""
  guard let target = targets[name] else {
    print("FUZZ_TARGET must be one of: \(targets.keys.sorted().joined(separator: " "))")
    exit(64)
  }
  return target
}()

@_cdecl("LLVMFuzzerTestOneInput")
package func testOneInput(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
  target(Array(UnsafeBufferPointer(start: data, count: size)))
  return 0
}

/// libFuzzer's `main`, under the name that the package manager links as the program's: compiler-rt, FuzzerInterface.h.
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
  _ count: UnsafeMutablePointer<CInt>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
  _ test: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

@_cdecl("fuzz_main")
package func main(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
  var (count, arguments) = (count, arguments)
  return runDriver(&count, &arguments, testOneInput)
}
