// SPDX-License-Identifier: Apache-2.0
import JSONValues
import MobileAuth
import Secrets
import TOMLSyntax

@testable import AuthenticatorPlugins

/// What a plug-in of an authenticator says, and its configuration.
func readPlugin(_ bytes: [UInt8]) {
  let input = Input(bytes, choices: 2)
  guard input.choice == 0 else { return readPluginConfiguration(input.text) }
  var buffer = PluginLineBuffer()
  for chunk in bytes.dropFirst().chunked(by: 4096) {
    buffer.append(chunk)
    while let line = buffer.next() { judge(line) }
    guard !buffer.isTooLong else { return }
  }
}

private func judge(_ line: [UInt8]) {
  guard let event = try? PluginLine.parse(line) else { return }
  switch event {
  case .data(let data):
    require(data.bytes.count <= AuthenticatorData.largest, "accepted data keeps the limit")
    require(data.registration.count <= AuthenticatorData.largestRegistration, "what is kept has a limit")
  case .waiting(let text), .retry(let text), .canceled(let text):
    require(text.utf8.count <= 256, "a reason keeps the limit of the answer")
  case .fallback: break
  case .failed, .exhausted: require(false, "no line is a failure")
  }
}

private func readPluginConfiguration(_ text: String) {
  guard let table = try? TOMLSyntax.parse(text) else { return }
  var reader = TableReader(table)
  guard let configuration = try? PluginConfiguration(&reader) else { return }
  require(Authenticator.isIdentifier(configuration.authenticator), "an accepted authenticator has an identifier")
  if case .socket(let path) = configuration.program { require(path.utf8.count < 108, "a socket's path fits") }
}

extension ArraySlice<UInt8> {
  fileprivate func chunked(by size: Int) -> [[UInt8]] {
    stride(from: startIndex, to: endIndex, by: size).map { Array(self[$0..<Swift.min($0 + size, endIndex)]) }
  }
}
