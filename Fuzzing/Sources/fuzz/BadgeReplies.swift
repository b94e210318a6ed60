// SPDX-License-Identifier: Apache-2.0
import CReaderBadge

/// What a card answers to a reader: its certificate and its signatures, in C.
func readBadgeReply(_ bytes: [UInt8]) {
  var point = [UInt8](repeating: 0, count: Int(badge_point_size))
  // A copy of exactly these bytes, so that a read behind them is found.
  let reply = UnsafeMutablePointer<UInt8>.allocate(capacity: max(1, bytes.count))
  defer { reply.deallocate() }
  for (index, byte) in bytes.enumerated() { reply[index] = byte }
  var why: UnsafePointer<CChar>?
  let digest = [UInt8](repeating: 7, count: 32)
  if badge_read_certificate(reply, bytes.count, &point, &why) {
    require(point[0] == 4, "a key is an uncompressed point")
    require(!badge_verify(point, digest, digest, digest.count), "a digest is no signature")
  }
  var signature: UnsafePointer<UInt8>?
  var size = 0
  guard badge_read_signature(reply, bytes.count, &signature, &size), let signature else { return }
  require((8...72).contains(size), "a signature has a size of P-256")
  require(signature >= UnsafePointer(reply) && signature + size <= reply + bytes.count, "it is a part of the reply")
}
