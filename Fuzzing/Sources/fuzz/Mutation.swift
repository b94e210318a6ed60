// SPDX-License-Identifier: Apache-2.0
/// libFuzzer's own mutations: compiler-rt, FuzzerInterface.h.
@_silgen_name("LLVMFuzzerMutate")
private func mutate(_ data: UnsafeMutablePointer<UInt8>, _ size: Int, _ limit: Int) -> Int

/// Limits of integers, and the results of computations with them.
private let numbers = [
  "0", "-1", "1", "600", "65535", "65536", "2147483648", "-2147483649", "4294967296", "253402300799", "253402300800",
  "9007199254740993", "9223372036854775807", "-9223372036854775807", "-9223372036854775808", "9223372036854775808",
  "18446744073709551615", "18446744073709551616", "1e999", "1.5",
].map { Array($0.utf8) }

/// Replaces a number in the text with another one in every fourth mutation: mutations of single bytes rarely produce a
/// number exactly at a limit.
@_cdecl("LLVMFuzzerCustomMutator")
package func mutateNumbers(_ data: UnsafeMutablePointer<UInt8>, _ size: Int, _ limit: Int, _ seed: UInt32) -> Int {
  let bytes = Array(UnsafeBufferPointer(start: data, count: size))
  guard seed % 4 == 0, let mutated = replaceNumber(in: bytes, seed: seed / 4), mutated.count <= limit else {
    return mutate(data, size, limit)
  }
  for (index, byte) in mutated.enumerated() { data[index] = byte }
  return mutated.count
}

private func replaceNumber(in bytes: [UInt8], seed: UInt32) -> [UInt8]? {
  let found = runs(of: bytes)
  guard !found.isEmpty else { return nil }
  var bytes = bytes
  bytes.replaceSubrange(
    found[Int(seed % UInt32(found.count))], with: numbers[Int(seed / UInt32(found.count) % UInt32(numbers.count))])
  return bytes
}

/// The ranges of digits, with their sign.
private func runs(of bytes: [UInt8]) -> [Range<Int>] {
  var runs: [Range<Int>] = []
  var start: Int?
  // The first byte selects the kind of the input.
  for (index, byte) in bytes.enumerated().dropFirst() {
    if (0x30...0x39).contains(byte) {
      start = start ?? (index > 1 && bytes[index - 1] == UInt8(ascii: "-") ? index - 1 : index)
    } else if let first = start {
      runs.append(first..<index)
      start = nil
    }
  }
  if let start { runs.append(start..<bytes.count) }
  return runs
}
